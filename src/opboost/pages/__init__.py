"""HTML pages for people who print and sign them: no scripts, nothing fetched from elsewhere."""
