package cmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/waymark-dns/waymark/internal/config"
	"github.com/waymark-dns/waymark/internal/control"
)

// controlFlags says which server is meant.
type controlFlags struct {
	Config string `short:"c" placeholder:"FILE" xor:"socket" help:"Configuration file of the server."`
	Socket string `placeholder:"PATH" xor:"socket" help:"Control socket of the server."`
}

func (f controlFlags) call(stdout io.Writer, command string, args ...string) error {
	path := f.Socket
	if path == "" {
		if f.Config == "" {
			return errors.New("finding the server: give -c FILE or --socket PATH")
		}
		p, _, err := config.Load(f.Config) // problems are the server's to tell
		if err != nil {
			return err
		}
		if p == nil || p.Control.Path == "" {
			return fmt.Errorf("finding the server: %s has no control socket; add control: {path: …}", f.Config)
		}
		path = p.Control.Path
	}
	text, err := control.Call(path, control.Request{Command: command, Args: args})
	if text != "" {
		_, _ = fmt.Fprintln(stdout, text)
	}
	return err
}

// ReloadCmd makes a running server read its configuration and its zones anew.
type ReloadCmd struct{ controlFlags }

// Run waits until the reload is done; its problems are the error.
func (c *ReloadCmd) Run(stdout io.Writer) error { return c.call(stdout, "reload") }

// StatusCmd tells what a running server serves.
type StatusCmd struct{ controlFlags }

// Run prints one line.
func (c *StatusCmd) Run(stdout io.Writer) error { return c.call(stdout, "status") }
