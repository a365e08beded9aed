"""What the artefacts measure: functions of plain settings, so that results can be kept."""
