"""Named, typed functions from data frames to data frames; they know no session and no file."""
