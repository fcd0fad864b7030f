// Command waymark is a DNS server and the instruments to judge one. This file is
// the table of its subcommands and nothing else.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/waymark-dns/waymark/internal/cmd"
)

type commands struct {
	Serve    cmd.ServeCmd    `cmd:"" help:"Run the server."`
	Start    cmd.StartCmd    `cmd:"" help:"Run the server on a configuration, as mosdns is started."`
	Check    cmd.CheckCmd    `cmd:"" help:"Tell every problem of a configuration."`
	Reload   cmd.ReloadCmd   `cmd:"" help:"Make a running server read its configuration and zones anew."`
	Status   cmd.StatusCmd   `cmd:"" help:"Tell what a running server serves."`
	Cache    cmd.CacheCmd    `cmd:"" help:"Look into the cache of a running server."`
	Config   cmd.ConfigCmd   `cmd:"" help:"Look at the configuration of a running server, and change it."`
	Sets     cmd.SetsCmd     `cmd:"" help:"Handle the rule sets of a running server."`
	Query    cmd.QueryCmd    `cmd:"" help:"Ask a server, as dig does."`
	Explain  cmd.ExplainCmd  `cmd:"" help:"Show every step that a running server takes to answer a question."`
	Log      cmd.LogCmd      `cmd:"" help:"Read the query log from its files."`
	Token    cmd.TokenCmd    `cmd:"" help:"Make a token for the HTTP API."`
	Password cmd.PasswordCmd `cmd:"" help:"Make the hash of a password for the HTTP API, read from the standard input."`
	Probe    cmd.ProbeCmd    `cmd:"" help:"Tell what a server's TCP can do."`
	Service  cmd.ServiceCmd  `cmd:"" help:"Make the server a service of systemd."`
	Zone     zoneCommands    `cmd:"" help:"Work on zone files."`
	Version  cmd.VersionCmd  `cmd:"" help:"Tell which build this is."`
}

type zoneCommands struct {
	Check cmd.ZoneCheckCmd `cmd:"" help:"Tell every problem of a zone file."`
}

func main() {
	var c commands
	parser := kong.Must(&c, kong.Name("waymark"), kong.Description("Waymark, a DNS server."), kong.BindTo(os.Stdout, (*io.Writer)(nil)))
	ctx, err := parser.Parse(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "waymark: reading the command line: %v (try waymark --help)\n", err)
		os.Exit(1)
	}
	err = ctx.Run()
	if err != nil && !errors.Is(err, cmd.ErrSilent) {
		fmt.Fprintln(os.Stderr, "waymark:", err)
	}
	os.Exit(cmd.ExitCode(err))
}
