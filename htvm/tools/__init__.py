"""What is around the compiler: it works and builds without this folder.

Tools import the compiler; the compiler imports no tool.  Only what users hold (`htvm.Module`,
`htvm.RunResult`, `htvm.load`) opens tools, in the methods that need them.
"""
