package api

import (
	"net/http"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/wire"
)

var cacheRoutes = []route{
	{method: http.MethodGet, path: "caches", scope: Read, do: (*Server).caches},
	{method: http.MethodGet, path: "cache/entries", scope: Read, do: (*Server).entries},
	{method: http.MethodDelete, path: "cache/entries", scope: Operate, do: (*Server).flush},
}

// cacheView is a cache as clients see it.
type cacheView struct {
	Tag       string `json:"tag"`
	Entries   int    `json:"entries"`
	Used      int64  `json:"used"` // octets
	Size      int64  `json:"size"` // octets
	Fills     uint64 `json:"fills"`
	Evictions uint64 `json:"evictions"`
	Dropped   uint64 `json:"dropped"`
}

func (s *Server) caches(w http.ResponseWriter, _ *http.Request) error {
	list := []cacheView{}
	for _, c := range s.conf.Live.Caches() {
		n := c.Cache.Stats()
		list = append(list, cacheView{c.Tag, n.Entries, n.Used, n.Size, n.Fills, n.Evictions, n.Dropped})
	}
	return reply(w, http.StatusOK, map[string]any{"caches": list})
}

// entryView is an entry as clients see it.
type entryView struct {
	Cache string  `json:"cache"`
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Rcode string  `json:"rcode"`
	TTL   float64 `json:"ttl"` // seconds left; below 0 it is stale
	Size  int     `json:"size"`
	CD    bool    `json:"cd,omitempty"`
	Scope string  `json:"scope,omitempty"` // client subnet that it is for
}

// selection is the entries that a request means.
type selection struct {
	caches      []NamedCache
	name, under wire.Name
	typ         string
}

func (s *Server) selected(r *http.Request) (sel selection, err error) {
	tag, given := param(r, "cache"), r.URL.Query().Has("cache")
	for _, c := range s.conf.Live.Caches() {
		if !given || c.Tag == tag {
			sel.caches = append(sel.caches, c)
		}
	}
	if len(sel.caches) == 0 {
		return sel, problem(http.StatusNotFound, "there is no such cache")
	}
	if sel.name, err = domain(r, "name"); err != nil {
		return sel, err
	}
	sel.under, err = domain(r, "under")
	sel.typ = param(r, "type")
	return sel, err
}

// wants tells whether an entry is meant.
func (sel *selection) wants(e *cache.Entry) bool {
	return (sel.name == nil || wire.EqualFold(e.Name, sel.name)) && (sel.under == nil || e.Name.Under(sel.under)) &&
		(sel.typ == "" || wire.TypeString(e.Type) == sel.typ)
}

func (s *Server) entries(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "cache", "name", "under", "type", "limit"); err != nil {
		return err
	}
	limit, err := number(r, "limit", 100, 10_000)
	if err != nil {
		return err
	}
	sel, err := s.selected(r)
	if err != nil {
		return err
	}
	list, more := []entryView{}, false
	for _, c := range sel.caches {
		c.Cache.Each(s.conf.Now(), func(e cache.Entry) bool {
			if !sel.wants(&e) {
				return true
			}
			if more = len(list) == limit; more {
				return false
			}
			v := entryView{Cache: c.Tag, Name: e.Name.String(), Type: wire.TypeString(e.Type), Rcode: e.Rcode.String(), TTL: e.Left.Seconds(), Size: int(e.Size), CD: e.CD}
			if e.Scope.IsValid() {
				v.Scope = e.Scope.String()
			}
			list = append(list, v)
			return true
		})
	}
	return reply(w, http.StatusOK, map[string]any{"entries": list, "more": more})
}

// flush takes entries out: those of a name, of all names below one, or all.
func (s *Server) flush(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "cache", "name", "under", "all"); err != nil {
		return err
	}
	sel, err := s.selected(r)
	if err != nil {
		return err
	}
	all, err := flag(r, "all")
	if err != nil {
		return problem(http.StatusBadRequest, "%v", err)
	}
	given := 0
	for _, g := range []bool{all, sel.name != nil, sel.under != nil} {
		if g {
			given++
		}
	}
	if given != 1 {
		return problem(http.StatusBadRequest, "say what to flush: one of name, under and all=true")
	}
	flushed := 0
	for _, c := range sel.caches {
		switch {
		case all:
			flushed += int(c.Cache.Stats().Entries)
			c.Cache.FlushAll()
		case sel.name != nil:
			flushed += c.Cache.Flush(sel.name)
		default:
			flushed += c.Cache.FlushTree(sel.under)
		}
	}
	note(r, "%d entries flushed: %s", flushed, r.URL.RawQuery)
	return reply(w, http.StatusOK, map[string]int{"flushed": flushed})
}
