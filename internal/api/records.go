package api

import (
	"net/http"
	"strconv"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/store"
)

// rrsetView is an RRset as clients see it and send it.
type rrsetView struct {
	Name string   `json:"name"`
	Type string   `json:"type"`
	TTL  uint32   `json:"ttl"`
	Data []string `json:"data"` // RDATA of each record, as in a master file
}

func viewOf(set *store.RRset) rrsetView {
	return rrsetView{set.Owner.String(), wire.TypeString(set.Type), set.TTL, append([]string{}, set.Data...)}
}

// exportZone writes the zone as a master file.
func (s *Server) exportZone(w http.ResponseWriter, r *http.Request) error {
	z, name, err := s.ofFile(r)
	if err != nil {
		return err
	}
	export := func() error { return z.Export(s.patiently(w)) }
	if z == nil {
		st, name, err := s.managed(r, false)
		if err != nil {
			return err
		}
		export = func() error { return st.Export(r.Context(), name, s.patiently(w)) }
	}
	w.Header().Set("Content-Type", "text/dns; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="zone"`)
	if err := export(); err != nil {
		s.conf.Log.Debug("sending a zone failed", "zone", name.String(), "error", err)
		panic(http.ErrAbortHandler) // so that the client sees that it is cut
	}
	return nil
}

// pageOf is the RRsets that a request means.
func pageOf(r *http.Request) (p store.Page, err error) {
	if p.Most, err = number(r, "limit", 1000, 10_000); err != nil {
		return p, err
	}
	if param(r, "skip") != "" {
		if p.Skip, err = number(r, "skip", 0, 1<<30); err != nil {
			return p, err
		}
	}
	if p.Owner, err = domain(r, "name"); err != nil {
		return p, err
	}
	if p.Under, err = domain(r, "under"); err != nil {
		return p, err
	}
	if text := param(r, "type"); text != "" {
		if p.Type, err = wire.ParseType(text); err != nil {
			return p, problem(http.StatusBadRequest, "type: %v", err)
		}
	}
	return p, nil
}

func (s *Server) rrsets(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "name", "under", "type", "skip", "limit"); err != nil {
		return err
	}
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	z, _, err := s.ofFile(r)
	if err != nil {
		return err
	}
	if z != nil {
		sets, more := z.RRsets(p)
		return listed(w, sets, more, nil)
	}
	st, name, err := s.managed(r, false)
	if err != nil {
		return err
	}
	info, err := st.Info(name)
	if err != nil {
		return storeProblem(err)
	}
	sets, more, err := st.RRsets(name, p)
	if err != nil {
		return storeProblem(err)
	}
	w.Header().Set("ETag", etag(info.Serial))
	return listed(w, sets, more, &info.Serial)
}

// listed answers with RRsets, and the serial of a managed zone.
func listed(w http.ResponseWriter, sets []store.RRset, more bool, serial *uint32) error {
	list := []rrsetView{}
	for i := range sets {
		list = append(list, viewOf(&sets[i]))
	}
	return reply(w, http.StatusOK, struct {
		RRsets []rrsetView `json:"rrsets"`
		More   bool        `json:"more"`
		Serial *uint32     `json:"serial,omitempty"`
	}{list, more, serial})
}

// operation is one change of an RRset.
type operation struct {
	Do   string   `json:"do"`   // add, set or delete
	Name string   `json:"name"` // with a final dot, or relative to the zone
	Type string   `json:"type,omitempty"`
	TTL  *uint32  `json:"ttl,omitempty"`
	Data []string `json:"data,omitempty"`
}

// usualTTL is that of records whose TTL is not said.
const usualTTL = 3600

var verbs = map[string]store.Verb{"add": store.Add, "set": store.Set, "delete": store.Delete}

// op is the operation in the store's words.
func (o *operation) op(zone wire.Name) (op store.Op, err error) {
	verb, ok := verbs[o.Do]
	if !ok {
		return op, problem(http.StatusBadRequest, "do: write add, set or delete")
	}
	op = store.Op{Do: verb, TTL: usualTTL, Data: o.Data}
	if o.TTL != nil {
		op.TTL = *o.TTL
	}
	if op.Owner, err = below(o.Name, zone); err != nil {
		return op, problem(http.StatusBadRequest, "name %q: %v", o.Name, err)
	}
	if o.Type == "" && verb == store.Delete {
		return op, nil
	}
	if op.Type, err = wire.ParseType(o.Type); err != nil {
		return op, problem(http.StatusBadRequest, "type %q: %v", o.Type, err)
	}
	return op, nil
}

// below is a name as people write it in a zone: "@" is the zone itself, and without a
// final dot it is relative.
func below(text string, zone wire.Name) (wire.Name, error) {
	switch {
	case text == "@":
		return zone, nil
	case text != "" && text[len(text)-1] != '.':
		text += "." + zone.String()
		if zone.String() == "." {
			text = text[:len(text)-1]
		}
	}
	return wire.ParseName(text)
}

// editZone does some operations together or not at all.
func (s *Server) editZone(w http.ResponseWriter, r *http.Request) error {
	st, name, err := s.managed(r, false)
	if err != nil {
		return err
	}
	var sent struct {
		Ops     []operation `json:"ops"`
		Serial  *uint32     `json:"serial,omitempty"`
		Comment string      `json:"comment,omitempty"`
	}
	if err := read(r, &sent); err != nil {
		return err
	}
	e := store.Edit{Zone: name, Serial: sent.Serial, By: store.Author{Who: asks(r).name, Note: sent.Comment}}
	if e.Match, err = match(r); err != nil {
		return err
	}
	if len(sent.Ops) == 0 {
		return problem(http.StatusBadRequest, "ops: write at least one operation")
	}
	wrong := problem(http.StatusBadRequest, "nothing has changed: operations are wrong")
	for i := range sent.Ops {
		op, err := sent.Ops[i].op(name)
		if err != nil {
			wrong.Errors = append(wrong.Errors, Fault{Text: "operation " + strconv.Itoa(i) + ": " + err.Error()})
			continue
		}
		e.Ops = append(e.Ops, op)
	}
	if len(wrong.Errors) > 0 {
		return wrong
	}
	res, err := st.Edit(r.Context(), e)
	return s.changed(w, r, name, res, err)
}

func (s *Server) zoneHistory(w http.ResponseWriter, r *http.Request) error {
	st, name, err := s.managed(r, false)
	if err != nil {
		return err
	}
	versions, err := st.History(name)
	if err != nil {
		return storeProblem(err)
	}
	return reply(w, http.StatusOK, map[string]any{"versions": append([]store.Version{}, versions...)})
}

// changeView is what differs in one RRset.
type changeView struct {
	Name string     `json:"name"`
	Type string     `json:"type"`
	Old  *rrsetView `json:"old,omitempty"`
	New  *rrsetView `json:"new,omitempty"`
}

func (s *Server) zoneDiff(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "from", "to"); err != nil {
		return err
	}
	st, name, err := s.managed(r, false)
	if err != nil {
		return err
	}
	var ends [2]uint32
	for i, key := range []string{"from", "to"} {
		n, err := strconv.ParseUint(param(r, key), 10, 32)
		if err != nil {
			return problem(http.StatusBadRequest, "%s: write the serial of a version", key)
		}
		ends[i] = uint32(n)
	}
	changes, err := st.Diff(name, ends[0], ends[1])
	if err != nil {
		return storeProblem(err)
	}
	list := []changeView{}
	for i := range changes {
		c := &changes[i]
		v := changeView{Name: c.Owner.String(), Type: wire.TypeString(c.Type)}
		for _, half := range []struct {
			set *store.RRset
			to  **rrsetView
		}{{&c.Old, &v.Old}, {&c.New, &v.New}} {
			if len(half.set.Data) > 0 {
				one := viewOf(half.set)
				*half.to = &one
			}
		}
		list = append(list, v)
	}
	return reply(w, http.StatusOK, map[string]any{"changes": list})
}

// restoreZone goes back to an earlier version, as a new one.
func (s *Server) restoreZone(w http.ResponseWriter, r *http.Request) error {
	st, name, err := s.managed(r, false)
	if err != nil {
		return err
	}
	var sent struct {
		Serial uint32 `json:"serial"`
	}
	if err := read(r, &sent); err != nil {
		return err
	}
	serial, err := match(r)
	if err != nil {
		return err
	}
	res, err := st.Restore(r.Context(), store.Restore{Zone: name, Serial: sent.Serial, Match: serial, By: by(r)})
	return s.changed(w, r, name, res, err)
}
