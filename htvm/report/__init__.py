"""Tables, JSON and CSV of what a build, a run or a comparison found."""
