package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// foreign is why a request without a token is not one that somebody at this machine
// means; empty where it is: the name in the address (else a name of others that leads
// here would do), and where the page comes from that asks.
func foreign(r *http.Request) string {
	if !ownHost(r.Host) {
		return "the name " + r.Host + " is not known here: ask for 127.0.0.1 or localhost, or use a token"
	}
	return crossSite(r)
}

// crossSite is why a request is one of another site's page; empty where it is not.
func crossSite(r *http.Request) string {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return "asked for by a page of another site"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return "asked for by a page of another site"
		}
	}
	return ""
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
