package api

import (
	"net/http/httptest"
	"testing"
)

// Who is let in without a token: clients of this machine, and no page of others.
func TestForeign(t *testing.T) {
	for _, c := range []struct {
		name, host string
		header     map[string]string
		want       bool
	}{
		{"this machine", "127.0.0.1:8080", nil, false},
		{"this machine by name", "localhost:8080", nil, false},
		{"this machine over IPv6", "[::1]:8080", nil, false},
		{"a name of others that leads here", "evil.example:8080", nil, true},
		{"a page of this server", "127.0.0.1:8080", map[string]string{"Origin": "http://127.0.0.1:8080"}, false},
		{"a page of another site", "127.0.0.1:8080", map[string]string{"Origin": "http://evil.example"}, true},
		{"a page of another port", "127.0.0.1:8080", map[string]string{"Origin": "http://127.0.0.1:81"}, true},
		{"an image in a page of another site", "127.0.0.1:8080", map[string]string{"Sec-Fetch-Site": "cross-site"}, true},
		{"what a person typed", "127.0.0.1:8080", map[string]string{"Sec-Fetch-Site": "none"}, false},
		{"an origin that is none", "127.0.0.1:8080", map[string]string{"Origin": "null"}, true},
	} {
		r := httptest.NewRequest("GET", "http://"+c.host+"/metrics", nil)
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		if why := foreign(r); (why != "") != c.want {
			t.Errorf("%s: %q", c.name, why)
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
