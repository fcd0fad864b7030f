package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// Problem is an error as clients get it (RFC 9457). Its type is always about:blank:
// the status says what kind it is.
type Problem struct {
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Detail string  `json:"detail,omitempty"` // for people
	Errors []Fault `json:"errors,omitempty"` // each of what is wrong
}

// Fault is one thing that is wrong with what was sent.
type Fault struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
	Mend string `json:"mend,omitempty"`
}

// Error is part of error.
func (p *Problem) Error() string { return p.Detail }

// problem is an error for the client.
func problem(status int, format string, args ...any) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// send answers with the problem.
func (p *Problem) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Del("Content-Disposition")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have gone
}

// asProblem is what a client is told of err: what is no Problem is our fault, and
// its text is for the log.
func asProblem(err error) (p *Problem, ours bool) {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p, false
	case errors.As(err, &large):
		return problem(http.StatusRequestEntityTooLarge, "the body is longer than %d octets", large.Limit), false
	}
	return problem(http.StatusInternalServerError, "the server could not do it; its log says why"), true
}

// reply answers with v in JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
	return nil
}

// read reads the body, which is one value in JSON, into v.
func read(r *http.Request, v any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return problem(http.StatusUnsupportedMediaType, "send application/json")
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return badBody(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return problem(http.StatusBadRequest, "reading the body: there is something behind the value")
	}
	return nil
}

// badBody is the problem of a body that could not be read.
func badBody(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return err
	}
	return problem(http.StatusBadRequest, "reading the body: %v", err)
}
