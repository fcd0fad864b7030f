package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Who may ask: with a token whoever shows it; without one clients of this machine,
// and no page of others.
func TestRefusal(t *testing.T) {
	for _, c := range []struct {
		name, token, host string
		header            map[string]string
		want              int
	}{
		{"this machine", "", "127.0.0.1:8080", nil, 0},
		{"this machine by name", "", "localhost:8080", nil, 0},
		{"this machine over IPv6", "", "[::1]:8080", nil, 0},
		{"a name of others that leads here", "", "evil.example:8080", nil, http.StatusForbidden},
		{"a page of this server", "", "127.0.0.1:8080", map[string]string{"Origin": "http://127.0.0.1:8080"}, 0},
		{"a page of another site", "", "127.0.0.1:8080", map[string]string{"Origin": "http://evil.example"}, http.StatusForbidden},
		{"a page of another port", "", "127.0.0.1:8080", map[string]string{"Origin": "http://127.0.0.1:81"}, http.StatusForbidden},
		{"an image in a page of another site", "", "127.0.0.1:8080", map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		{"what a person typed", "", "127.0.0.1:8080", map[string]string{"Sec-Fetch-Site": "none"}, 0},
		{"an origin that is none", "", "127.0.0.1:8080", map[string]string{"Origin": "null"}, http.StatusForbidden},
		{"the token", "secret", "dns.example", map[string]string{"Authorization": "Bearer secret"}, 0},
		{"the token, in small letters", "secret", "dns.example", map[string]string{"Authorization": "bearer secret"}, 0},
		{"another token", "secret", "127.0.0.1", map[string]string{"Authorization": "Bearer secre"}, http.StatusUnauthorized},
		{"no token", "secret", "127.0.0.1", nil, http.StatusUnauthorized},
		{"another scheme", "secret", "127.0.0.1", map[string]string{"Authorization": "Basic secret"}, http.StatusUnauthorized},
	} {
		r := httptest.NewRequest("GET", "http://"+c.host+"/metrics", nil)
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		s := &Server{conf: Config{Token: c.token}}
		if got, why := s.refusal(r); got != c.want {
			t.Errorf("%s: %d (%s), want %d", c.name, got, why, c.want)
		}
	}
}

// Without a token only this machine is served, whatever was written.
func TestOwnAddress(t *testing.T) {
	for in, want := range map[string]string{
		":9091": "127.0.0.1:9091", "0.0.0.0:9091": "127.0.0.1:9091", "192.0.2.1:80": "127.0.0.1:80", "[::]:80": "127.0.0.1:80",
		"127.0.0.1:80": "127.0.0.1:80", "[::1]:80": "[::1]:80", "localhost:80": "localhost:80",
	} {
		if got, err := ownAddress(in); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
	if _, err := ownAddress("nothing"); err == nil {
		t.Error("an address without a port is taken")
	}
}
