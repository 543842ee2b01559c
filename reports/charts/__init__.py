"""Charts of the pages as inline SVG: plain rows in, markup out; no script is needed to see them.

Horizontal places are percentages, so a chart is as wide as its page and its text keeps its size.
The page's script zooms a chart by moving and widening the inner SVG element of class `moved`.
"""
