package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/limit"
)

// Scope is what a client may do. A greater one includes those below.
type Scope uint8

// The scopes.
const (
	Nobody  Scope = iota // needs no scope: logging in
	Read                 // look
	Operate              // change what a restart would undo or time would: caches, sets, upstreams; and zones
	Admin                // change the configuration, delete from the log, see secrets and the audit trail
)

var scopeNames = [...]string{"nobody", "read", "operate", "admin"}

// String is the scope's name in configurations and in the description of the API.
func (s Scope) String() string { return scopeNames[s] }

// ParseScope reads a scope that a token can have.
func ParseScope(text string) (Scope, bool) {
	for s, name := range scopeNames {
		if name == text && Scope(s) != Nobody {
			return Scope(s), true
		}
	}
	return Nobody, false
}

// Token is a token that clients may show (RFC 6750 §2.1).
type Token struct {
	Name  string
	Scope Scope
	Hash  [sha256.Size]byte // of the token, which nobody here knows
}

// Access says who may ask.
type Access struct {
	Tokens   []Token
	Password string // bcrypt of the password that people log in with; empty is none
	Open     bool   // clients of this machine need neither, and may do everything
}

// identity is who asks.
type identity struct {
	name    string
	scope   Scope
	session *session // of a browser
}

// authorize finds out who asks, and whether they may do what needs that scope. unsafe
// says that it changes something.
//
// With a token that is all there is to check: no page of others can make a browser
// show it. A browser shows the cookie of its session by itself, so that what changes
// something needs the session's secret beside it. Without either a browser on this
// machine is told by what it sends from a client that means it.
func (s *Server) authorize(r *http.Request, need Scope, unsafe bool) (identity, *Problem) {
	who, p := s.identify(r, unsafe)
	if p == nil && who.scope < need {
		p = problem(http.StatusForbidden, "this needs the scope %s, and %s has %s", need, who.name, who.scope)
	}
	return who, p
}

func (s *Server) identify(r *http.Request, unsafe bool) (identity, *Problem) {
	if auth := r.Header.Get("Authorization"); auth != "" {
		return s.bearer(r, auth)
	}
	if c, err := r.Cookie(cookieName); err == nil {
		if session := s.sessions.find(c.Value, s.conf.Now()); session != nil {
			if unsafe && subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(session.csrf)) != 1 {
				return identity{}, problem(http.StatusForbidden, "send the session's secret as %s", csrfHeader)
			}
			return identity{session.name, session.scope, session}, nil
		}
	}
	if !s.conf.Access.Open || !s.local(r) {
		return identity{}, problem(http.StatusUnauthorized, "this server wants a token: Authorization: Bearer …")
	}
	if why := foreign(r); why != "" {
		return identity{}, problem(http.StatusForbidden, "%s", why)
	}
	return identity{name: "this machine", scope: Admin}, nil
}

// bearer identifies who shows a token.
func (s *Server) bearer(r *http.Request, auth string) (identity, *Problem) {
	scheme, shown, _ := strings.Cut(auth, " ")
	if t, ok := s.token(strings.TrimSpace(shown)); ok && strings.EqualFold(scheme, "Bearer") {
		return identity{name: t.Name, scope: t.Scope}, nil
	}
	if p := s.failed(r); p != nil {
		return identity{}, p
	}
	return identity{}, problem(http.StatusUnauthorized, "no such token")
}

// token is the token with that text. All are looked at, whatever was sent.
func (s *Server) token(text string) (found Token, ok bool) {
	hash := sha256.Sum256([]byte(text))
	for _, t := range s.conf.Access.Tokens {
		if subtle.ConstantTimeCompare(hash[:], t.Hash[:]) == 1 {
			found, ok = t, true
		}
	}
	return found, ok
}

// Limits of who guesses.
const (
	guessesPerSecond = 1
	guessesAtOnce    = 10
)

// guesses limits failed attempts by the client's address.
func guesses() *limit.Rate {
	return limit.NewRate(limit.RateConfig{PerSecond: guessesPerSecond, Burst: guessesAtOnce, V4: 32, V6: 64})
}

// failed counts an attempt at logging in, or a token that is none, and is the problem of
// who has had too many.
func (s *Server) failed(r *http.Request) *Problem {
	if s.guesses.Take(remote(r).Addr(), s.conf.Now()) {
		return nil
	}
	return problem(http.StatusTooManyRequests, "too many attempts: wait a minute")
}

// remote is the client's address.
func remote(r *http.Request) netip.AddrPort {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// local tells whether the client is on this machine.
func (s *Server) local(r *http.Request) bool { return remote(r).Addr().IsLoopback() }

// usable is an error where nobody could ask, or everybody.
func (a *Access) usable(addr netip.AddrPort) error {
	if len(a.Tokens) > 0 || a.Password != "" || a.Open && addr.Addr().IsLoopback() {
		return nil
	}
	if addr.Addr().IsLoopback() {
		return fmt.Errorf("serving the API at %s: nobody could ask: write tokens, or open: true for everyone on this machine", addr)
	}
	return fmt.Errorf("serving the API at %s: other machines can reach it: write tokens, or listen on 127.0.0.1", addr)
}

// sessionTimes are how long a session lives without use, and at most.
const (
	sessionIdle = time.Hour
	sessionLife = 12 * time.Hour
)
