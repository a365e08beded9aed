"""HTML pages to print and sign; they run no scripts and load nothing from elsewhere."""
