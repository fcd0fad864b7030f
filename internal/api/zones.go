package api

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/store"
	"github.com/waymark-dns/waymark/internal/zone/xfr"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

var zoneRoutes = []route{
	{method: http.MethodGet, path: "zones", scope: Read, do: (*Server).zones},
	{method: http.MethodPost, path: "zones", scope: Operate, body: smallBody, do: (*Server).createZone},
	{method: http.MethodGet, path: "zones/{zone}", scope: Read, do: (*Server).zone},
	{method: http.MethodDelete, path: "zones/{zone}", scope: Operate, do: (*Server).deleteZone},
	{method: http.MethodPut, path: "zones/{zone}/import", scope: Operate, body: zoneBody, slow: true, do: (*Server).importZone},
	{method: http.MethodGet, path: "zones/{zone}/export", scope: Read, slow: true, do: (*Server).exportZone},
	{method: http.MethodGet, path: "zones/{zone}/rrsets", scope: Read, do: (*Server).rrsets},
	{method: http.MethodPatch, path: "zones/{zone}/rrsets", scope: Operate, body: 16 << 20, do: (*Server).editZone},
	{method: http.MethodGet, path: "zones/{zone}/history", scope: Read, do: (*Server).zoneHistory},
	{method: http.MethodGet, path: "zones/{zone}/diff", scope: Read, do: (*Server).zoneDiff},
	{method: http.MethodPost, path: "zones/{zone}/restore", scope: Operate, body: smallBody, do: (*Server).restoreZone},
}

// zoneView is a zone as clients see it.
type zoneView struct {
	Name     string     `json:"name"`
	Managed  bool       `json:"managed"` // through this API; else it comes from a file
	Serial   uint32     `json:"serial"`
	Records  int        `json:"records"`
	Broken   bool       `json:"broken,omitempty"` // it could not be read: its names answer SERVFAIL
	Versions uint64     `json:"versions,omitempty"`
	Created  *time.Time `json:"created,omitempty"`
	Changed  *time.Time `json:"changed,omitempty"`
}

func managedView(i store.Info) zoneView {
	return zoneView{Name: i.Zone.String(), Managed: true, Serial: i.Serial, Records: i.Records, Versions: i.Versions, Created: &i.Created, Changed: &i.Changed}
}

// views is all zones; where one is managed it is not told a second time as served.
func (s *Server) views() ([]zoneView, error) {
	list, managed := []zoneView{}, map[string]bool{}
	if st := s.conf.Live.Store(); st != nil {
		infos, err := st.Zones()
		if err != nil {
			return nil, err
		}
		for _, i := range infos {
			list = append(list, managedView(i))
			managed[string(i.Zone.Fold())] = true
		}
	}
	for _, z := range s.conf.Live.Zones() {
		if managed[string(z.Name().Fold())] {
			continue
		}
		v := zoneView{Name: z.Name().String(), Broken: z.Broken()}
		if !v.Broken {
			v.Serial, v.Records = z.Serial(), z.Records()
		}
		list = append(list, v)
	}
	return list, nil
}

func (s *Server) zones(w http.ResponseWriter, _ *http.Request) error {
	list, err := s.views()
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]any{"zones": list})
}

func (s *Server) zone(w http.ResponseWriter, r *http.Request) error {
	name, err := apex(r)
	if err != nil {
		return err
	}
	list, err := s.views()
	if err != nil {
		return err
	}
	for _, v := range list {
		if strings.EqualFold(v.Name, name.String()) {
			w.Header().Set("ETag", etag(v.Serial))
			return reply(w, http.StatusOK, v)
		}
	}
	return problem(http.StatusNotFound, "there is no zone %s", name)
}

// apex is the zone in the path; the root is written "@".
func apex(r *http.Request) (wire.Name, error) {
	text := r.PathValue("zone")
	if text == "@" {
		text = "."
	}
	n, err := wire.ParseName(text)
	if err != nil {
		return nil, problem(http.StatusBadRequest, "zone %q: %v", text, err)
	}
	return n.Fold(), nil
}

// managed is the store and the zone in the path, which has to be in it unless it is
// to be made.
func (s *Server) managed(r *http.Request, made bool) (*store.Store, wire.Name, error) {
	name, err := apex(r)
	if err != nil {
		return nil, nil, err
	}
	st := s.conf.Live.Store()
	if st == nil {
		return nil, nil, problem(http.StatusNotFound, "no zones are managed: add zonestore: to the configuration")
	}
	if _, err := st.Info(name); err == nil {
		return st, name, nil
	} else if !errors.Is(err, store.ErrNoZone) {
		return nil, nil, err
	}
	for _, z := range s.conf.Live.Zones() {
		if wire.EqualFold(z.Name(), name) {
			return nil, nil, problem(http.StatusConflict, "zone %s comes from a file: change the file, or remove it from the configuration first", name)
		}
	}
	if !made {
		return nil, nil, problem(http.StatusNotFound, "there is no zone %s", name)
	}
	return st, name, nil
}

// etag is a serial as a tag, and match the serial in If-Match; nil where any will do.
func etag(serial uint32) string { return `"` + strconv.FormatUint(uint64(serial), 10) + `"` }

func match(r *http.Request) (*uint32, error) {
	text := strings.TrimSpace(r.Header.Get("If-Match"))
	if text == "" || text == "*" {
		return nil, nil
	}
	n, err := strconv.ParseUint(strings.Trim(text, `"`), 10, 32)
	if err != nil {
		return nil, problem(http.StatusBadRequest, "If-Match: send the ETag of the zone, which is its serial in quotes")
	}
	serial := uint32(n)
	return &serial, nil
}

// by is who changes a zone.
func by(r *http.Request) store.Author {
	return store.Author{Who: asks(r).name, Note: param(r, "comment")}
}

// changed swaps a new version in and tells it.
func (s *Server) changed(w http.ResponseWriter, r *http.Request, name wire.Name, res store.Result, err error) error {
	if err != nil {
		return storeProblem(err)
	}
	if res.Zone != nil {
		if err := s.conf.Live.UseZone(res.Zone); err != nil {
			return problem(http.StatusInternalServerError, "the change of %s is kept, and is served after the next reload: %v", name, err)
		}
	}
	note(r, "zone %s: %s, serial %d, %d records added, %d removed", name, res.Version.What, res.Version.Serial, res.Version.Added, res.Version.Removed)
	w.Header().Set("ETag", etag(res.Version.Serial))
	return reply(w, http.StatusOK, struct {
		store.Version
		Unchanged bool `json:"unchanged"`
	}{res.Version, res.Unchanged})
}

// storeProblem is what a client is told of an error of the store.
func storeProblem(err error) error {
	var bad *zonefile.ProblemsError
	var op *store.OpError
	switch {
	case errors.As(err, &bad):
		p := problem(http.StatusUnprocessableEntity, "nothing has changed: some records are wrong")
		for _, one := range bad.Problems {
			if one.Level != zonefile.Error {
				continue
			}
			p.Errors = append(p.Errors, Fault{File: one.File, Line: one.Line, Text: one.Text, Mend: one.Mend})
		}
		return p
	case errors.As(err, &op):
		return operations(err)
	case errors.Is(err, store.ErrMatch):
		return problem(http.StatusPreconditionFailed, "%v", err)
	case errors.Is(err, store.ErrExists):
		return problem(http.StatusConflict, "%v", err)
	case errors.Is(err, store.ErrNoZone), errors.Is(err, store.ErrNoVersion):
		return problem(http.StatusNotFound, "%v", err)
	case errors.Is(err, store.ErrTooLarge):
		return problem(http.StatusRequestEntityTooLarge, "%v", err)
	case errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrClosed), errors.Is(err, context.Canceled):
		return err
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return err
	}
	return problem(http.StatusUnprocessableEntity, "nothing has changed: %v", err)
}

// operations tells each operation that is wrong.
func operations(err error) error {
	p := problem(http.StatusUnprocessableEntity, "nothing has changed: operations are wrong")
	var walk func(error)
	walk = func(err error) {
		if op, ok := err.(*store.OpError); ok {
			p.Errors = append(p.Errors, Fault{Text: op.Error()})
			return
		}
		switch e := err.(type) {
		case interface{ Unwrap() []error }:
			for _, one := range e.Unwrap() {
				walk(one)
			}
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		}
	}
	walk(err)
	return p
}

// primary is a server to transfer a zone from.
type primary struct {
	Name    string `json:"name,omitempty"` // of the zone, when it is created
	Primary string `json:"primary"`        // address, with or without a port
	Key     string `json:"key,omitempty"`  // name of a TSIG key in the configuration
}

// source is the records of a transfer.
func (s *Server) source(p primary, name wire.Name) (store.Source, error) {
	from, err := s.conf.Live.Primary(p.Primary, p.Key)
	if err != nil {
		return nil, problem(http.StatusBadRequest, "%v", err)
	}
	return func(ctx context.Context, each func([]zonefile.Record) error) error {
		_, err := from.Fetch(ctx, name, xfr.Have{}, each)
		return err
	}, nil
}

// createZone makes a zone: by transfer, or with nothing but an SOA record and the
// given name servers.
func (s *Server) createZone(w http.ResponseWriter, r *http.Request) error {
	var sent struct {
		primary
		NS    []string `json:"ns,omitempty"`    // names of its name servers
		Admin string   `json:"admin,omitempty"` // mailbox of the SOA record, as a name
	}
	if err := read(r, &sent); err != nil {
		return err
	}
	r.SetPathValue("zone", sent.Name)
	st, name, err := s.managed(r, true)
	if err != nil {
		return err
	}
	in := store.Import{Zone: name, Mode: store.Create, By: by(r)}
	if sent.Primary != "" {
		in.Exact = true
		if in.Source, err = s.source(sent.primary, name); err != nil {
			return err
		}
	} else if in.Source, err = first(st, name, sent.NS, sent.Admin); err != nil {
		return err
	}
	res, err := st.Import(r.Context(), in)
	return s.changed(w, r, name, res, err)
}

// first is the records of a zone that is new.
func first(st *store.Store, name wire.Name, servers []string, admin string) (store.Source, error) {
	if len(servers) == 0 {
		return nil, problem(http.StatusBadRequest, "say ns, the names of its name servers, or primary, to transfer it from")
	}
	if admin == "" {
		admin = "hostmaster"
	}
	for _, text := range append([]string{admin}, servers...) {
		if strings.ContainsAny(text, " \t\r\n;()\"") {
			return nil, problem(http.StatusBadRequest, "%q is no name", text)
		}
	}
	text := "@ 3600 IN SOA " + servers[0] + " " + admin + " 1 7200 900 1209600 300\n"
	for _, ns := range servers {
		text += "@ 3600 IN NS " + ns + "\n"
	}
	return st.Source(store.Text{Name: "new zone", Body: strings.NewReader(text), Origin: name}), nil
}

// importZone puts a whole zone in place of what is there: a master file in the body,
// or what a primary has.
func (s *Server) importZone(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "comment"); err != nil {
		return err
	}
	st, name, err := s.managed(r, true)
	if err != nil {
		return err
	}
	in := store.Import{Zone: name, Mode: store.Put, By: by(r)}
	if in.Match, err = match(r); err != nil {
		return err
	}
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind {
	case "application/json":
		var p primary
		if err := read(r, &p); err != nil {
			return err
		}
		in.Exact = true
		if in.Source, err = s.source(p, name); err != nil {
			return err
		}
	case "text/dns", "text/plain":
		in.Source = st.Source(store.Text{Name: "import", Body: r.Body, Most: zoneBody, Origin: name})
	default:
		return problem(http.StatusUnsupportedMediaType, "send text/dns, a master file, or application/json, a primary")
	}
	res, err := st.Import(r.Context(), in)
	return s.changed(w, r, name, res, err)
}

// deleteZone removes a zone with its history.
func (s *Server) deleteZone(w http.ResponseWriter, r *http.Request) error {
	st, name, err := s.managed(r, false)
	if err != nil {
		return err
	}
	serial, err := match(r)
	if err != nil {
		return err
	}
	if err := st.Delete(r.Context(), name, serial); err != nil {
		return storeProblem(err)
	}
	if err := s.conf.Live.DropZone(name); err != nil {
		return err
	}
	note(r, "zone %s deleted", name)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
