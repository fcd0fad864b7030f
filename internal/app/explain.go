package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/explain"
)

// explainTime is how long a question may take.
const explainTime = 15 * time.Second

// explain runs a question through the running configuration.
func (s *Server) explain(ctx context.Context, a explain.Asked) (*explain.Answered, error) {
	q, err := a.Question()
	if err != nil {
		return nil, err
	}
	l, err := s.explainListener(a.Listener)
	if err != nil {
		return nil, err
	}
	q.Arrive(l.peer, l.Addr())
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	w := s.world.Load()
	c := explain.Config{Handler: w.root, Now: s.now, UDPSize: uint16(w.plan.Server.UDPSize)}
	report, err := c.Run(ctx, q)
	if err != nil {
		return nil, err
	}
	answered := report.Answered(q)
	answered.Rule = s.rules.text(report.Note.Rule)
	return answered, nil
}

// explainListener is the listener of that name, or the first one.
func (s *Server) explainListener(name string) (*listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, l := range s.listeners {
		if name == "" || l.key == name {
			return l, nil
		}
		all = append(all, l.key)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no listener")
	}
	return nil, fmt.Errorf("no listener %q: there are %s", name, strings.Join(all, ", "))
}

// explainCommand is explain for the control socket: args are an explain.Asked in
// JSON, the text is an explain.Answered.
func (s *Server) explainCommand(ctx context.Context, args []string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("explain: expected one argument, found %d", len(args))
	}
	var a explain.Asked
	if err := json.Unmarshal([]byte(args[0]), &a); err != nil {
		return "", fmt.Errorf("reading the question: %w", err)
	}
	answered, err := s.explain(ctx, a)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(answered)
	return string(text), err
}
