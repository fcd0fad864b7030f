package cmd

import "io"

// SetsCmd handles the rule sets of a running server.
type SetsCmd struct {
	List   SetsListCmd   `cmd:"" help:"List the sets, with their files."`
	Reload SetsReloadCmd `cmd:"" help:"Read the files of a set anew, or of all."`
}

// SetsListCmd lists the sets.
type SetsListCmd struct{ controlFlags }

// Run prints one line a set.
func (c *SetsListCmd) Run(stdout io.Writer) error { return c.call(stdout, "sets", "list") }

// SetsReloadCmd reads sets anew.
type SetsReloadCmd struct {
	controlFlags
	Tag string `arg:"" optional:"" help:"Tag of the set; without it, all."`
}

// Run tells how many were read; what could not be read is the error.
func (c *SetsReloadCmd) Run(stdout io.Writer) error {
	if c.Tag == "" {
		return c.call(stdout, "sets", "reload")
	}
	return c.call(stdout, "sets", "reload", c.Tag)
}
