package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"time"

	"github.com/waymark-dns/waymark/internal/control"
	"github.com/waymark-dns/waymark/internal/history"
)

// ConfigCmd looks at the configuration of a running server and changes it.
type ConfigCmd struct {
	Get      ConfigGetCmd      `cmd:"" help:"Show the configuration file of the server."`
	Check    ConfigCheckCmd    `cmd:"" help:"Tell what the server would say to a configuration, and change nothing."`
	Apply    ConfigApplyCmd    `cmd:"" help:"Make a text the server's configuration."`
	Confirm  ConfigConfirmCmd  `cmd:"" help:"Keep a change that waits for its confirmation."`
	History  ConfigHistoryCmd  `cmd:"" help:"List the versions that the configuration has had."`
	Show     ConfigShowCmd     `cmd:"" help:"Show a version."`
	Diff     ConfigDiffCmd     `cmd:"" help:"Show what differs between versions."`
	Rollback ConfigRollbackCmd `cmd:"" help:"Go back to a version, or take back a change that waits."`
}

// ConfigGetCmd shows the file.
type ConfigGetCmd struct {
	controlFlags
	Masked bool `xor:"what" help:"Leave its secrets out."`
	Etag   bool `name:"etag" xor:"what" help:"Show by what the text is known, for --if-match."`
}

// Run prints the text.
func (c *ConfigGetCmd) Run(stdout io.Writer) error {
	what := ""
	switch {
	case c.Masked:
		what = "masked"
	case c.Etag:
		what = "etag"
	}
	return c.call(stdout, "config", "get", what)
}

// ConfigCheckCmd checks a text as the server would.
type ConfigCheckCmd struct {
	controlFlags
	File string `arg:"" help:"The text; - is standard input."`
}

// Run prints the problems, one a line; their paths are of the server's own file.
func (c *ConfigCheckCmd) Run(stdout io.Writer) error {
	text, err := changeText(c.File)
	if err != nil {
		return err
	}
	return c.send(stdout, "check", text)
}

// changeFlags is what goes with a change.
type changeFlags struct {
	Confirm time.Duration `placeholder:"60s" help:"Take it back after this time, unless it is confirmed by then."`
	Comment string        `placeholder:"TEXT" help:"Why, for the history."`
	IfMatch string        `default:"*" placeholder:"ETAG" help:"Only where the text that is replaced is the one that config get --etag told."`
}

// encode is the change for the control socket.
func (f *changeFlags) encode(text string) (string, error) {
	who := "control socket"
	if u, err := user.Current(); err == nil {
		who = u.Username + ", " + who
	}
	line, err := json.Marshal(history.Change{Text: text, IfMatch: f.IfMatch, Who: who, Comment: f.Comment, Confirm: f.Confirm})
	return string(line), err
}

// ConfigApplyCmd changes the configuration.
type ConfigApplyCmd struct {
	controlFlags
	changeFlags
	File string `arg:"" help:"The text; - is standard input."`
}

// Run returns when the server serves by the text, or does not take it.
func (c *ConfigApplyCmd) Run(stdout io.Writer) error {
	text, err := changeText(c.File)
	if err != nil {
		return err
	}
	change, err := c.encode(text)
	if err != nil {
		return err
	}
	return c.send(stdout, "apply", change)
}

// ConfigConfirmCmd keeps a change.
type ConfigConfirmCmd struct {
	controlFlags
	Version string `arg:"" optional:"" help:"The version that waits; else whichever waits."`
}

// Run tells which version stays.
func (c *ConfigConfirmCmd) Run(stdout io.Writer) error {
	return c.call(stdout, "config", "confirm", c.Version)
}

// ConfigHistoryCmd lists versions.
type ConfigHistoryCmd struct{ controlFlags }

// Run prints one line a version, the newest first.
func (c *ConfigHistoryCmd) Run(stdout io.Writer) error { return c.call(stdout, "config", "history") }

// ConfigShowCmd shows a version.
type ConfigShowCmd struct {
	controlFlags
	Version string `arg:""`
}

// Run prints its text.
func (c *ConfigShowCmd) Run(stdout io.Writer) error {
	return c.call(stdout, "config", "show", c.Version)
}

// ConfigDiffCmd shows what differs.
type ConfigDiffCmd struct {
	controlFlags
	From string `arg:"" optional:"" help:"A version; else the one before the present."`
	To   string `arg:"" optional:"" help:"A version; else the file as it is now."`
}

// Run prints a unified diff.
func (c *ConfigDiffCmd) Run(stdout io.Writer) error {
	return c.call(stdout, "config", "diff", c.From, c.To)
}

// ConfigRollbackCmd goes back.
type ConfigRollbackCmd struct {
	controlFlags
	changeFlags
	Version string `arg:"" optional:"" help:"The version; else the one before the present."`
}

// Run returns when the server serves by the version.
func (c *ConfigRollbackCmd) Run(stdout io.Writer) error {
	change, err := c.encode("")
	if err != nil {
		return err
	}
	return c.call(stdout, "config", "rollback", c.Version, change)
}

// maxRequest is the longest request that the control socket carries, in octets.
const maxRequest = 1 << 20

var errTooLong = errors.New("longer than the control socket carries: write the file itself and reload")

// send sends a text, if it is not too long.
func (f controlFlags) send(stdout io.Writer, args ...string) error {
	line, err := json.Marshal(control.Request{Command: "config", Args: args})
	if err != nil {
		return err
	}
	if len(line) >= maxRequest {
		return fmt.Errorf("sending the text: %w", errTooLong)
	}
	return f.call(stdout, "config", args...)
}

// changeText reads a text that is to be sent.
func changeText(file string) (string, error) {
	in := os.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("reading the text: %w", err)
		}
		defer f.Close() // nothing is written
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxRequest+1))
	if err == nil && len(text) > maxRequest {
		err = errTooLong
	}
	if err != nil {
		return "", fmt.Errorf("reading the text: %w", err)
	}
	return string(text), nil
}
