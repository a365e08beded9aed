"""The measurements of the artefacts: functions of plain settings, whose results are stored."""
