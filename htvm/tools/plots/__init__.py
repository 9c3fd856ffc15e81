"""What all figures share: colours, bars, and lanes over time.

Reports, pages and every result's ``plot_...`` draw with these, so that a colour means the same
everywhere.
"""
