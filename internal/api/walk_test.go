package api

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/waymark-dns/waymark/docs"
)

func netipAddr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// described is what docs/openapi.yaml says of one route.
type described struct {
	OperationID string           `yaml:"operationId"`
	Summary     string           `yaml:"summary"`
	Scope       string           `yaml:"x-scope"`
	Security    *[]any           `yaml:"security"`
	Parameters  []map[string]any `yaml:"parameters"`
	RequestBody map[string]any   `yaml:"requestBody"`
	Responses   map[string]any   `yaml:"responses"`
}

// description is docs/openapi.yaml.
type description struct {
	OpenAPI    string                          `yaml:"openapi"`
	Paths      map[string]map[string]described `yaml:"paths"`
	Components map[string]map[string]any       `yaml:"components"`
}

func readDescription(t *testing.T) (d description) {
	t.Helper()
	if err := yaml.Unmarshal(docs.OpenAPI, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// The routes and docs/openapi.yaml say the same: methods, paths, scopes, bodies, and
// the parts of paths; and each reference in the file leads somewhere.
func TestOpenAPI(t *testing.T) {
	d := readDescription(t)
	if !strings.HasPrefix(d.OpenAPI, "3.1.") {
		t.Errorf("version %q", d.OpenAPI)
	}
	ids := map[string]bool{}
	count := 0
	for _, r := range tables() {
		op, ok := d.Paths["/"+r.path][strings.ToLower(r.method)]
		if !ok {
			t.Errorf("%s %s is not described", r.method, r.path)
			continue
		}
		count++
		if op.Scope != r.scope.String() || (op.Security != nil) != (r.scope == Nobody) {
			t.Errorf("%s %s: scope %s, described as %s", r.method, r.path, r.scope, op.Scope)
		}
		if (op.RequestBody != nil) != (r.body > 0) {
			t.Errorf("%s %s: a body of %d octets, described: %v", r.method, r.path, r.body, op.RequestBody)
		}
		if op.Summary == "" || op.OperationID == "" || ids[op.OperationID] || op.Responses["default"] == nil {
			t.Errorf("%s %s: summary %q, id %q, responses %v", r.method, r.path, op.Summary, op.OperationID, op.Responses)
		}
		ids[op.OperationID] = true
		for _, part := range strings.Split(r.path, "/") {
			if strings.HasPrefix(part, "{") && !slices.ContainsFunc(op.Parameters, func(p map[string]any) bool { return p["in"] == "path" && "{"+fmt.Sprint(p["name"])+"}" == part }) {
				t.Errorf("%s %s: %s is not described", r.method, r.path, part)
			}
		}
	}
	for path, methods := range d.Paths {
		count -= len(methods)
		_ = path
	}
	if count != 0 {
		t.Errorf("%d routes are described that are not there", -count)
	}
	for line := range strings.Lines(string(docs.OpenAPI)) {
		for _, ref := range strings.Split(line, `$ref: "#/components/`)[1:] {
			ref, _, _ = strings.Cut(ref, `"`)
			kind, name, _ := strings.Cut(ref, "/")
			if d.Components[kind][name] == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
	}
}

// walk calls do with every route of the description, with something in place of the
// parts of paths.
func walk(t *testing.T, do func(method, path string, need Scope)) {
	t.Helper()
	for path, methods := range readDescription(t).Paths {
		path = strings.NewReplacer("{zone}", "example.org", "{tag}", "ads", "{id}", "1").Replace(strings.TrimPrefix(path, "/"))
		for method, op := range methods {
			need := Nobody
			if op.Scope != "nobody" {
				need, _ = ParseScope(op.Scope)
			}
			do(strings.ToUpper(method), path, need)
		}
	}
}

// Nobody gets anything without a token, with a wrong one, or with too small a scope.
func TestWalk(t *testing.T) {
	r := newRig(t, func(c *Config, _ *world) {})
	walk(t, func(method, path string, need Scope) {
		r.as, r.head = Nobody, nil
		r.want(http.StatusUnauthorized, method, path, "")
		if need == Nobody {
			return
		}
		r.head = map[string]string{"Cookie": cookieName + "=made-up"}
		r.want(http.StatusUnauthorized, method, path, "")
		for _, scope := range []Scope{Read, Operate} {
			if r.as, r.head = scope, nil; scope < need {
				r.want(http.StatusForbidden, method, path, "")
			}
		}
	})
	r.as = Nobody
	for i := range 30 { // whoever guesses is told to wait
		r.head = map[string]string{"Authorization": fmt.Sprintf("Bearer guess%d", i)}
		a := r.do("GET", "health", "")
		if a.code == http.StatusTooManyRequests {
			if i < 5 {
				t.Errorf("after %d guesses", i)
			}
			r.as, r.head = Read, nil
			r.want(http.StatusOK, "GET", "health", "") // the one who knows is let in
			return
		}
	}
	t.Error("thirty guesses, and nothing happens")
}

// Every route takes the scope that it needs: what comes is no refusal.
func TestScopes(t *testing.T) {
	r := newRig(t, nil)
	walk(t, func(method, path string, need Scope) {
		if need == Nobody || path == "log/stream" {
			return
		}
		r.as = need
		if a := r.do(method, path, ""); a.code == http.StatusUnauthorized || a.code == http.StatusForbidden || a.code >= 500 {
			t.Errorf("%s %s with %s: %d %s", method, path, need, a.code, a.body)
		}
	})
}

// Paths that are none, methods that a path does not take, and tricks.
func TestPaths(t *testing.T) {
	r := newRig(t, nil)
	r.want(http.StatusNotFound, "GET", "nothing", "")
	r.want(http.StatusNotFound, "GET", "zones/example.org/nothing", "")
	if a := r.want(http.StatusMethodNotAllowed, "PUT", "zones", "{}"); a.head.Get("Allow") != "GET, POST" {
		t.Errorf("allowed: %s", a.head.Get("Allow"))
	}
	r.as = Nobody
	r.want(http.StatusUnauthorized, "GET", "nothing", "")
	for _, path := range []string{"/api/v1/../v1/health", "//api/v1/health", "/api/v1//health", "/api/v1/%2e%2e/v1/health", "/api/v1/zones/%00", "/api/v1/zones/..%2f..%2fetc%2fpasswd", "/api/v1/zones/" + strings.Repeat("a.", 300)} {
		if a := r.raw("GET", path, nil, false); a.code != http.StatusUnauthorized && a.code != http.StatusNotFound && a.code != http.StatusMovedPermanently && a.code != http.StatusTemporaryRedirect {
			t.Errorf("%s without a token: %d %s", path, a.code, a.body)
		}
	}
	r.as = Admin
	for _, path := range []string{"zones/%00", "zones/..%2f..%2fetc%2fpasswd", "zones/" + strings.Repeat("a.", 300)} {
		if a := r.do("GET", path, ""); a.code != http.StatusBadRequest && a.code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
}

// Bodies that are too long, no JSON, of another kind, or with something unknown.
func TestBounds(t *testing.T) {
	r := newRig(t, nil)
	long := `{"name":"` + strings.Repeat("a", smallBody) + `"}`
	r.want(http.StatusRequestEntityTooLarge, "POST", "zones", long)
	r.want(http.StatusUnsupportedMediaType, "POST", "zones", "name=x")
	r.want(http.StatusBadRequest, "POST", "zones", `{"name":1}`)
	r.want(http.StatusBadRequest, "POST", "zones", `{"nome":"x"}`)
	r.want(http.StatusBadRequest, "POST", "zones", `{"name":"x"} {}`)
	r.want(http.StatusBadRequest, "POST", "zones", `{`)
	r.want(http.StatusRequestEntityTooLarge, "POST", "config/check", strings.Repeat("#", configBody+1))
	// A route without a body takes none.
	if a := r.do("POST", "reload", strings.Repeat("x", 1<<20)); a.code != http.StatusOK && a.code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body for reload: %d", a.code)
	}
	// Headers without an end.
	conn, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("GET /api/v1/health HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", 4*maxHeader) + "\r\n\r\n"))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	if !strings.Contains(line, "431") {
		t.Errorf("a header of %d octets: %q", 4*maxHeader, line)
	}
}

// Requests beyond the places are refused, and cost nobody anything.
func TestPlaces(t *testing.T) {
	r := newRig(t, nil)
	for range cap(r.places) {
		r.places <- struct{}{}
	}
	r.want(http.StatusServiceUnavailable, "GET", "health", "")
	for range cap(r.places) {
		<-r.places
	}
	r.want(http.StatusOK, "GET", "health", "")
}

// Somebody logs in, with a password or a token, and has a session: what changes
// something needs its secret too.
func TestLogin(t *testing.T) {
	r := newRig(t, nil)
	r.as = Nobody
	r.want(http.StatusUnauthorized, "POST", "login", `{"password":"wrong"}`)
	r.want(http.StatusUnauthorized, "POST", "login", `{"token":"wrong"}`)
	a := r.want(http.StatusOK, "POST", "login", `{"password":"`+password+`"}`)
	cookie := a.head.Get("Set-Cookie")
	for _, part := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("cookie %s: no %s", cookie, part)
		}
	}
	var view sessionView
	a.json(t, &view)
	value, _, _ := strings.Cut(cookie, ";")
	r.head = map[string]string{"Cookie": value}
	r.want(http.StatusOK, "GET", "status", "")
	r.want(http.StatusForbidden, "POST", "reload", "")
	r.head[csrfHeader] = view.CSRF + "x"
	r.want(http.StatusForbidden, "POST", "reload", "")
	r.head[csrfHeader] = view.CSRF
	r.want(http.StatusOK, "POST", "reload", "")
	r.want(http.StatusNoContent, "DELETE", "session", "")
	r.want(http.StatusUnauthorized, "GET", "status", "")
	r.head = map[string]string{"Origin": "http://evil.example"}
	r.want(http.StatusForbidden, "POST", "login", `{"password":"`+password+`"}`)
	r.head = nil
	a = r.want(http.StatusOK, "POST", "login", `{"token":"look"}`)
	a.json(t, &view)
	if view.Scope != "read" {
		t.Errorf("a session of a token to read has scope %s", view.Scope)
	}
}

// Sessions end: without use, by age, and when there are too many.
func TestSessions(t *testing.T) {
	var s sessions
	cookie, _ := s.begin("x", Read, 0)
	if s.find(cookie, sessionIdle) == nil {
		t.Error("a session ends too early")
	}
	if s.find(cookie, 2*sessionIdle+1) != nil {
		t.Error("a session does not end without use")
	}
	cookie, _ = s.begin("x", Read, 0)
	for at := time.Duration(0); at < sessionLife; at += sessionIdle / 2 {
		if s.find(cookie, at) == nil {
			t.Fatalf("a session that is used ends after %v", at)
		}
	}
	if s.find(cookie, sessionLife+1) != nil {
		t.Error("a session does not end by age")
	}
	var first string
	for i := range maxSessions + 1 {
		c, _ := s.begin("x", Read, time.Duration(i))
		if i == 0 {
			first = c
		}
	}
	if len(s.all) != maxSessions || s.find(first, maxSessions+1) != nil {
		t.Errorf("%d sessions", len(s.all))
	}
}

// With open clients of this machine need nothing, and pages of others get nothing.
func TestOpen(t *testing.T) {
	r := newRig(t, func(c *Config, _ *world) { c.Access = Access{Open: true} })
	r.as = Nobody
	r.want(http.StatusOK, "POST", "reload", "")
	for _, head := range []map[string]string{{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}} {
		r.head = head
		r.want(http.StatusForbidden, "POST", "reload", "")
	}
	r.head = map[string]string{"Authorization": "Bearer made-up"}
	r.want(http.StatusUnauthorized, "POST", "reload", "")
}

// Each change, and each attempt at one, is in the trail, also after a restart; what was
// shown is not.
func TestAudit(t *testing.T) {
	r := newRig(t, nil)
	r.want(http.StatusOK, "POST", "reload", "")
	r.as = Read
	r.want(http.StatusForbidden, "POST", "reload", "")
	r.as = Nobody
	r.want(http.StatusUnauthorized, "POST", "login", `{"password":"secret guess"}`)
	r.as = Admin
	r.want(http.StatusOK, "GET", "status", "")
	var got struct{ Entries []Entry }
	r.want(http.StatusOK, "GET", "audit", "").json(t, &got)
	var lines []string
	for _, e := range got.Entries {
		lines = append(lines, fmt.Sprintf("%s %s %s %d %s", e.Who, e.Method, e.Path, e.Status, e.What))
	}
	want := []string{
		"nobody POST /api/v1/login 401 that is not it",
		"reader POST /api/v1/reload 403 this needs the scope operate, and reader has read",
		"adminer POST /api/v1/reload 200 reloaded: zones",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the trail is\n%s", strings.Join(lines, "\n"))
	}
	text, err := os.ReadFile(r.audit.path)
	if err != nil || bytes.Contains(text, []byte("guess")) || !bytes.HasPrefix(text, []byte(auditVersion+"\n")) {
		t.Errorf("%v: %s", err, text)
	}
	write(t, r.audit.path+"2", string(text)+`{"time":"torn`)
	again, err := OpenAudit(r.audit.path+"2", r.conf.Log)
	if err != nil || len(again.recent) != 3 {
		t.Fatalf("%v, %d entries", err, len(again.recent))
	}
	again.add(time.Now(), Entry{Who: "x"})
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if again, err = OpenAudit(again.path, r.conf.Log); err != nil || len(again.recent) != 4 {
		t.Errorf("%v, %d entries behind a torn line", err, len(again.recent))
	}
	_ = again.Close()
	write(t, again.path, "something else\n")
	if _, err := OpenAudit(again.path, r.conf.Log); err == nil {
		t.Error("another file is taken for a trail")
	}
}

// A full trail goes on in a new file, and the one before is kept.
func TestAuditTurns(t *testing.T) {
	path := t.TempDir() + "/audit"
	a, err := OpenAudit(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.size = maxAudit + 1
	a.add(time.Now(), Entry{Who: "x"})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, path + ".1"} {
		if text, err := os.ReadFile(p); err != nil || !bytes.HasPrefix(text, []byte(auditVersion)) {
			t.Errorf("%s: %v, %s", p, err, text)
		}
	}
}

// Who could not ask, or everybody could, is no server.
func TestUsable(t *testing.T) {
	token := []Token{{Name: "x"}}
	for _, c := range []struct {
		addr string
		a    Access
		ok   bool
	}{
		{"127.0.0.1:1", Access{}, false}, {"127.0.0.1:1", Access{Open: true}, true}, {"192.0.2.1:1", Access{Open: true}, false},
		{"0.0.0.0:1", Access{Open: true}, false}, {"192.0.2.1:1", Access{Tokens: token}, true}, {"192.0.2.1:1", Access{Password: "x"}, true},
	} {
		if err := c.a.usable(netipAddr(c.addr)); (err == nil) != c.ok {
			t.Errorf("%s %+v: %v", c.addr, c.a, err)
		}
	}
}
