package cmd

import (
	"fmt"
	"io"
)

// QueryCmd is `waymark query`, a client in the manner of dig: it asks one server
// one question and shows the response.
type QueryCmd struct {
	Args []string `arg:"" optional:"" passthrough:"" name:"argument" help:"@SERVER[:PORT], NAME, TYPE, CLASS, -x ADDRESS and +OPTIONs, in any order."`
	JSON bool     `name:"json" help:"Print the response as one JSON object."`
}

// exitNoAnswer is what dig exits with when no server answered.
const exitNoAnswer = 9

// Help is the long help of the subcommand: its defaults, options and exit codes.
func (c *QueryCmd) Help() string {
	text := "waymark query @127.0.0.1:5353 www.example.org A +dnssec +tcp\n\n" +
		"Without a type it asks for A, without a name for the NS records of the root, " +
		"without a server the first one of /etc/resolv.conf. " +
		"A word that is a type or a class is taken for one; a name of that spelling ends in a dot.\n\n" +
		"Exit code: 0 a response came, whatever its RCODE; 1 wrong use; 9 no usable response.\n\n" +
		"Options, where +noNAME turns a switch off and a unique beginning will do:\n"
	for i := range queryOptions {
		text += fmt.Sprintf("\n  %-16s %s", queryOptions[i].form(), queryOptions[i].help)
	}
	return text + "\n\n" +
		"  -x ADDRESS       the PTR records of an IPv4 or IPv6 address\n" +
		"  -p PORT          the server's port, unless @SERVER says it\n" +
		"  -q, -t, -c WORD  a name, a type, a class, where a bare word could be taken for another"
}

// Run asks and prints to stdout. Wrong use is a plain error (exit code 1), a
// missing answer an ExitError with code 9.
func (c *QueryCmd) Run(stdout io.Writer) error {
	l, err := parseLookup(c.Args)
	if err != nil {
		return err
	}
	l.out.json = l.out.json || c.JSON
	r, err := l.ask()
	if err != nil {
		return &ExitError{Code: exitNoAnswer, Err: err}
	}
	switch {
	case l.out.json:
		return printJSON(stdout, r)
	case l.out.short:
		return printShort(stdout, r)
	default:
		return printText(stdout, r)
	}
}
