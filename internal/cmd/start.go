package cmd

import (
	"errors"
	"io"
	"runtime"
)

// StartCmd is ServeCmd with the flags that mosdns has.
type StartCmd struct {
	Config string `short:"c" placeholder:"FILE" help:"Configuration file."`
	Dir    string `short:"d" placeholder:"DIR" help:"Folder that relative paths start from."`
	CPU    int    `name:"cpu" help:"Processors to use; 0 is all."`
}

// Run serves.
func (c *StartCmd) Run(stdout io.Writer) error {
	if c.Config == "" {
		return errors.New("reading the command line: give -c FILE")
	}
	if c.CPU > 0 {
		runtime.GOMAXPROCS(c.CPU)
	}
	return (&ServeCmd{Config: c.Config, Dir: c.Dir}).Run(stdout)
}
