package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/waymark-dns/waymark/internal/history"
	"github.com/waymark-dns/waymark/internal/plan"
)

// newHistory is who changes the configuration's file; nil where there is none.
func (s *Server) newHistory(o Options) *history.Manager {
	if o.File == "" {
		return nil
	}
	h := o.Plan.Server.History
	return history.New(history.Config{
		Path: o.File, Dir: h.Dir, Keep: h.Keep, Socket: o.Plan.Control.Path,
		Check:  func(text []byte) []plan.Problem { return s.checkText(o.Parse(text)) },
		Reload: s.reloadFile, Wall: s.wall, Log: o.Log,
	})
}

// checkText adds to the problems of a text what keeps its sockets from being opened.
func (s *Server) checkText(p *plan.Plan, problems []plan.Problem) []plan.Problem {
	for _, problem := range problems {
		if !problem.ZoneFile {
			return problems
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.probe(p); err != nil {
		problems = append(problems, plan.Problem{Pos: p.At("listen"), Text: err.Error()})
	}
	return problems
}

// reloadFile is reload for a changed file: zones that fail are an error where they are
// more than before.
func (s *Server) reloadFile(ctx context.Context) (string, error) {
	before := s.world.Load().failed
	text, err := s.reload(ctx)
	if err != nil && text != "" && s.world.Load().failed <= before {
		return fmt.Sprintf("%s; %v", text, err), nil
	}
	return text, err
}

// configCommand does what the command line asks for.
func (s *Server) configCommand(args []string) (string, error) {
	if s.history == nil {
		return "", errors.New("the server was started without a configuration file")
	}
	return s.history.Command(args)
}
