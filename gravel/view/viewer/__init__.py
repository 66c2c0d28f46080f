"""The viewer: a page in the browser that shows a result file, or a simulation that goes on."""
