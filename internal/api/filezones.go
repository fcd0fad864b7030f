package api

import (
	"net/http"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/store"
)

// ofFile is the zone in the path where it comes from a file and is not managed; nil
// where it is none of those. It can be read through the API, and is changed where it is.
func (s *Server) ofFile(r *http.Request) (z *store.FileZone, name wire.Name, err error) {
	if name, err = apex(r); err != nil {
		return nil, nil, err
	}
	if st := s.conf.Live.Store(); st != nil {
		if _, err := st.Info(name); err == nil {
			return nil, name, nil
		}
	}
	file, ok := s.conf.Live.ZoneFile(name)
	if !ok {
		return nil, name, nil
	}
	if z, err = store.ReadFile(r.Context(), file, name); err != nil {
		return nil, name, storeProblem(err)
	}
	return z, name, nil
}
