package api

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

const (
	cookieName  = "waymark"
	csrfHeader  = "X-CSRF-Token"
	maxSessions = 64
	maxPassword = 72 // octets that bcrypt looks at
)

// session is a browser that has logged in.
type session struct {
	name        string
	scope       Scope
	csrf        string // the secret that its pages send
	begun, used time.Duration
}

// sessions is all of them, by the hash of what the cookie says.
type sessions struct {
	mu   sync.Mutex // guards all, and used of each
	all  map[[sha256.Size]byte]*session
	hash sync.Mutex // one password at a time is looked at: it takes the processor a while
}

// find is the session of a cookie, nil where there is none or its time is over.
func (s *sessions) find(cookie string, now time.Duration) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sha256.Sum256([]byte(cookie))
	found := s.all[key]
	if found == nil {
		return nil
	}
	if now-found.used > sessionIdle || now-found.begun > sessionLife {
		delete(s.all, key)
		return nil
	}
	found.used = now
	return found
}

// begin makes a session. Where there are too many the one that was not used for the
// longest ends.
func (s *sessions) begin(name string, scope Scope, now time.Duration) (cookie string, made *session) {
	cookie = rand.Text()
	made = &session{name: name, scope: scope, csrf: rand.Text(), begun: now, used: now}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[[sha256.Size]byte]*session{}
	}
	if len(s.all) >= maxSessions {
		var oldest [sha256.Size]byte
		for key, o := range s.all {
			if at := s.all[oldest]; at == nil || o.used < at.used {
				oldest = key
			}
		}
		delete(s.all, oldest)
	}
	s.all[sha256.Sum256([]byte(cookie))] = made
	return cookie, made
}

// end ends a session.
func (s *sessions) end(over *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, o := range s.all {
		if o == over {
			delete(s.all, key)
		}
	}
}

// login is what logs in: one of the two.
type login struct {
	Password string `json:"password,omitempty"`
	Token    string `json:"token,omitempty"`
}

// sessionView is a session as its browser sees it.
type sessionView struct {
	Name  string `json:"name"`
	Scope string `json:"scope"`
	CSRF  string `json:"csrf,omitempty"` // to be sent as X-CSRF-Token with what changes something
}

var sessionRoutes = []route{
	{method: http.MethodPost, path: "login", scope: Nobody, body: smallBody, do: (*Server).login},
	{method: http.MethodGet, path: "session", scope: Read, do: (*Server).session},
	{method: http.MethodDelete, path: "session", scope: Read, do: (*Server).logout},
}

// login begins a session. Every attempt counts for the limit, and who has made too
// many is refused before anything is looked at.
func (s *Server) login(w http.ResponseWriter, r *http.Request) error {
	if why := crossSite(r); why != "" {
		return problem(http.StatusForbidden, "%s", why)
	}
	if p := s.failed(r); p != nil {
		return p
	}
	var sent login
	if err := read(r, &sent); err != nil {
		return problem(http.StatusUnauthorized, "send {\"password\": …} or {\"token\": …}: %v", err)
	}
	name, scope, ok, busy := s.known(sent)
	if busy {
		return problem(http.StatusTooManyRequests, "another password is being looked at: try again")
	}
	if !ok {
		return problem(http.StatusUnauthorized, "that is not it")
	}
	cookie, made := s.sessions.begin(name, scope, s.conf.Now())
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil, MaxAge: int(sessionLife / time.Second),
	})
	note(r, "logged in as %s", name)
	return reply(w, http.StatusOK, sessionView{name, scope.String(), made.csrf})
}

// known is who logs in. busy says that another password is being looked at: nobody
// waits for that, or guesses would take all places.
func (s *Server) known(sent login) (name string, scope Scope, ok, busy bool) {
	if sent.Token != "" {
		t, ok := s.token(sent.Token)
		return t.Name, t.Scope, ok, false
	}
	if sent.Password == "" || len(sent.Password) > maxPassword || s.conf.Access.Password == "" {
		return "", Nobody, false, false
	}
	if !s.sessions.hash.TryLock() {
		return "", Nobody, false, true
	}
	defer s.sessions.hash.Unlock()
	err := bcrypt.CompareHashAndPassword([]byte(s.conf.Access.Password), []byte(sent.Password))
	return "password", Admin, err == nil, false
}

// session tells who asks.
func (s *Server) session(w http.ResponseWriter, r *http.Request) error {
	who := asks(r)
	view := sessionView{Name: who.name, Scope: who.scope.String()}
	if who.session != nil {
		view.CSRF = who.session.csrf
	}
	return reply(w, http.StatusOK, view)
}

// logout ends the session.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	if who := asks(r); who.session != nil {
		s.sessions.end(who.session)
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1})
	w.WriteHeader(http.StatusNoContent)
	return nil
}
