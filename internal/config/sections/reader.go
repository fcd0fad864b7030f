package sections

import (
	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

// reader is the state of one Read: the file, and where keys were written.
type reader struct {
	*tree.Source
	dir    string
	where  map[string]plan.Pos
	manual func() []entry // every key there is; the tables cannot name themselves
}
