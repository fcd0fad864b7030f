package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// refusal is why a request is not answered, and with which code; 0 is none.
//
// With a token that is all there is to check: no page of others can make a browser
// show it. Without one a browser on this machine is told by what it sends from a
// client that means it: the name in the address (else a name of others that leads
// here would do), and where the page comes from that asks.
func (s *Server) refusal(r *http.Request) (code int, why string) {
	if s.conf.Token != "" {
		if !shows(r, s.conf.Token) {
			return http.StatusUnauthorized, "this server wants the token of its configuration: Authorization: Bearer …"
		}
		return 0, ""
	}
	if !ownHost(r.Host) {
		return http.StatusForbidden, "the name " + r.Host + " is not known here: ask for 127.0.0.1 or localhost, or write api: {token: …}"
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return http.StatusForbidden, "asked for by a page of another site"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return http.StatusForbidden, "asked for by a page of another site"
		}
	}
	return 0, ""
}

// shows tells whether the client has the token.
func shows(r *http.Request, token string) bool {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(token)) // of equal length, whatever was sent
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// ownHost tells whether the host in a request is this machine by a name that only
// it has.
func ownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
