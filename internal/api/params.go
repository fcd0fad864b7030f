package api

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/wire"
)

// param is a parameter of the address. The body is not looked at, whatever its type
// says: curl calls every body a form.
func param(r *http.Request, key string) string { return r.URL.Query().Get(key) }

// number is a parameter that is a whole number from 1 to most.
func number(r *http.Request, key string, preset, most int) (int, error) {
	text := param(r, key)
	if text == "" {
		return preset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, problem(http.StatusBadRequest, "%s: write a number from 1 to %d", key, most)
	}
	return n, nil
}

// only makes sure that there are no parameters but those.
func only(r *http.Request, known ...string) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem(http.StatusBadRequest, "reading parameters: %v", err)
	}
	for key := range values {
		found := false
		for _, k := range known {
			found = found || k == key
		}
		if !found {
			return problem(http.StatusBadRequest, "no parameter %q: there are %s", key, strings.Join(known, ", "))
		}
	}
	return nil
}

// domain is a parameter that is a name, nil where it is not there.
func domain(r *http.Request, key string) (wire.Name, error) {
	text := param(r, key)
	if text == "" {
		return nil, nil
	}
	n, err := wire.ParseName(text)
	if err != nil {
		return nil, problem(http.StatusBadRequest, "%s: %v", key, err)
	}
	return n, nil
}
