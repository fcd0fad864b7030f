package plan

import (
	"os"
	"path/filepath"
)

// History is the versions of the configuration that were in use; an empty folder
// is off.
type History struct {
	Dir  string
	Keep int // versions
}

// DefaultHistory has what is not written of a history that is wanted.
func DefaultHistory() History {
	// A configuration has some kilobytes; nobody looks further back.
	return History{Keep: 100}
}

func (c *checker) history() {
	h, pos := c.plan.Server.History, c.plan.At("history.dir")
	if h.Dir == "" {
		return
	}
	parent := filepath.Dir(h.Dir)
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		c.add(pos, "create it, owned by the user that the server runs as", "history.dir: there is no folder %s", parent)
	}
	if info, err := os.Stat(h.Dir); err == nil && !info.IsDir() {
		c.add(pos, "name a folder", "history.dir: %s is a file", h.Dir)
	}
}
