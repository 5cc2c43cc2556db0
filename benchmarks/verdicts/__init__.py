"""Are the verdicts on sources right? Pasts of which it is known what each source is worth."""
