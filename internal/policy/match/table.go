package match

import (
	"fmt"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Kind is one matcher that rules can name.
type Kind struct {
	Name string
	Args string // what the arguments are; empty is none
	Doc  string
	Make func(args string) (policy.Matcher, error)
}

// Kinds is all matchers.
func Kinds() []Kind {
	return []Kind{
		{"class", "IN or CH", "the question's class", makeClass},
		{"stranger", "", "the client may ask for our own zones only", makeStranger},
		{"transfer", "", "the question asks for a zone transfer, AXFR or IXFR", makeTransfer},
	}
}

func makeClass(args string) (policy.Matcher, error) {
	switch args {
	case "IN":
		return Class(wire.ClassIN), nil
	case "CH":
		return Class(wire.ClassCH), nil
	}
	return nil, fmt.Errorf("reading class %q: not IN or CH", args)
}

func makeTransfer(args string) (policy.Matcher, error) {
	return Transfer{}, noArgs("transfer", args)
}

func noArgs(name, args string) error {
	if args != "" {
		return fmt.Errorf("reading %q: %s takes no arguments", args, name)
	}
	return nil
}
