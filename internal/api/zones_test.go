package api

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
)

const master = `$TTL 300
@ IN SOA ns1 hostmaster 7 3600 900 86400 300
@ IN NS ns1
ns1 IN A 192.0.2.53
www IN A 192.0.2.1
www IN A 192.0.2.2
`

// imports puts a master file in.
func (r *rig) imports(code int, zone string, body io.Reader) answer {
	r.t.Helper()
	r.head = map[string]string{"Content-Type": "text/dns"}
	a := r.raw("PUT", prefix+"zones/"+zone+"/import", body, false)
	r.head = nil
	if a.code != code {
		r.t.Errorf("import of %s: %d, want %d: %s", zone, a.code, code, a.body)
	}
	return a
}

func TestZones(t *testing.T) {
	r := newRig(t, nil)
	r.as = Operate
	a := r.imports(http.StatusOK, "example.org", strings.NewReader(master))
	if a.head.Get("ETag") != `"7"` || r.world.served["example.org."].Records() != 5 {
		t.Fatalf("%v %s", a.head, a.body)
	}
	var list struct{ Zones []zoneView }
	r.want(http.StatusOK, "GET", "zones", "").json(t, &list)
	if len(list.Zones) != 1 || list.Zones[0].Name != "example.org." || !list.Zones[0].Managed || list.Zones[0].Serial != 7 {
		t.Errorf("%+v", list)
	}
	r.want(http.StatusOK, "GET", "zones/EXAMPLE.org", "")
	r.want(http.StatusNotFound, "GET", "zones/example.net", "")

	// An edit: together or not at all, and only of the version that was meant.
	edit := `{"ops":[{"do":"set","name":"www","type":"A","ttl":60,"data":["192.0.2.9"]},{"do":"add","name":"@","type":"MX","data":["10 mail"]},{"do":"delete","name":"ns2.example.org."}],"comment":"a test"}`
	r.head = map[string]string{"If-Match": `"6"`}
	r.want(http.StatusPreconditionFailed, "PATCH", "zones/example.org/rrsets", edit)
	r.head = map[string]string{"If-Match": `"7"`}
	a = r.want(http.StatusOK, "PATCH", "zones/example.org/rrsets", edit)
	r.head = nil
	if a.head.Get("ETag") != `"8"` {
		t.Errorf("%v %s", a.head, a.body)
	}
	for _, wrong := range []string{
		`{"ops":[]}`, `{"ops":[{"do":"change","name":"www"}]}`, `{"ops":[{"do":"set","name":"www","type":"NOSUCH","data":["x"]}]}`,
		`{"ops":[{"do":"set","name":"a..b","type":"A","data":["192.0.2.1"]}]}`,
	} {
		r.want(http.StatusBadRequest, "PATCH", "zones/example.org/rrsets", wrong)
	}
	for _, wrong := range []string{
		`{"ops":[{"do":"set","name":"www","type":"A","data":["192.0.2.300"]}]}`,
		`{"ops":[{"do":"set","name":"www.example.net.","type":"A","data":["192.0.2.1"]}]}`,
		`{"ops":[{"do":"delete","name":"@","type":"SOA"}]}`,
		`{"ops":[{"do":"set","name":"www","type":"CNAME","data":["other"]}]}`,
	} {
		r.want(http.StatusUnprocessableEntity, "PATCH", "zones/example.org/rrsets", wrong)
	}
	var sets struct {
		RRsets []rrsetView
		More   bool
		Serial uint32
	}
	r.want(http.StatusOK, "GET", "zones/example.org/rrsets?name=www.example.org", "").json(t, &sets)
	if len(sets.RRsets) != 1 || fmt.Sprint(sets.RRsets[0]) != "{www.example.org. A 60 [192.0.2.9]}" || sets.Serial != 8 {
		t.Errorf("%+v", sets)
	}
	r.want(http.StatusOK, "GET", "zones/example.org/rrsets?limit=2", "").json(t, &sets)
	if len(sets.RRsets) != 2 || !sets.More {
		t.Errorf("%+v", sets)
	}
	if a = r.want(http.StatusOK, "GET", "zones/example.org/export", ""); !strings.Contains(a.body, "192.0.2.9") || !strings.Contains(a.body, "mail") {
		t.Error(a.body)
	}

	// History: what was, what differs, and back.
	var history struct{ Versions []struct{ Serial uint32 } }
	r.want(http.StatusOK, "GET", "zones/example.org/history", "").json(t, &history)
	if len(history.Versions) != 2 {
		t.Errorf("%+v", history)
	}
	var diff struct{ Changes []changeView }
	r.want(http.StatusOK, "GET", "zones/example.org/diff?from=7&to=8", "").json(t, &diff)
	found := false
	for _, c := range diff.Changes {
		found = found || c.Type == "A" && c.Name == "www.example.org." && len(c.Old.Data) == 2 && len(c.New.Data) == 1
	}
	if !found {
		t.Errorf("%+v", diff)
	}
	r.want(http.StatusBadRequest, "GET", "zones/example.org/diff?from=7", "")
	r.want(http.StatusNotFound, "GET", "zones/example.org/diff?from=7&to=99", "")
	r.want(http.StatusOK, "POST", "zones/example.org/restore", `{"serial":7}`)
	r.want(http.StatusNotFound, "POST", "zones/example.org/restore", `{"serial":99}`)
	r.want(http.StatusOK, "GET", "zones/example.org/rrsets?name=www.example.org", "").json(t, &sets)
	if len(sets.RRsets) != 1 || len(sets.RRsets[0].Data) != 2 || sets.Serial != 9 {
		t.Errorf("%+v", sets)
	}
	if z := r.world.served["example.org."]; z.Serial() != 9 {
		t.Errorf("serial %d is served", z.Serial())
	}
	// A body that repeats what is there changes nothing.
	r.head = map[string]string{"If-Match": `"9"`}
	r.want(http.StatusNoContent, "DELETE", "zones/example.org", "")
	r.head = nil
	if r.world.served["example.org."] != nil {
		t.Error("the zone is served still")
	}
	r.want(http.StatusNotFound, "DELETE", "zones/example.org", "")
}

// A new zone has what a zone needs, and no zone is made twice.
func TestCreateZone(t *testing.T) {
	r := newRig(t, nil)
	r.want(http.StatusOK, "POST", "zones", `{"name":"example.org","ns":["ns1.example.net."]}`)
	r.want(http.StatusConflict, "POST", "zones", `{"name":"example.org.","ns":["ns1.example.net."]}`)
	r.want(http.StatusOK, "POST", "zones", `{"name":".","ns":["ns1.example.net."]}`)
	r.want(http.StatusOK, "GET", "zones/@", "")
	for _, wrong := range []string{`{"name":"example.com"}`, `{"name":"a..b","ns":["x."]}`, `{"name":"example.com","ns":["x. ; $INCLUDE /etc/passwd"]}`, `{"name":"example.com","primary":"nobody"}`} {
		r.want(http.StatusBadRequest, "POST", "zones", wrong)
	}
	if z := r.world.served["example.org."]; z == nil || z.Records() != 2 {
		t.Errorf("%v", z)
	}
}

// A zone of a file is not changed.
func TestFileZone(t *testing.T) {
	r := newRig(t, nil)
	name, err := wire.ParseName("file.example.")
	if err != nil {
		t.Fatal(err)
	}
	r.world.files = []*zone.Zone{zone.Broken(name)}
	if a := r.want(http.StatusOK, "GET", "zones", ""); !strings.Contains(a.body, "file.example.") {
		t.Error(a.body)
	}
	r.world.file = filepath.Join(t.TempDir(), "zone")
	write(t, r.world.file, master)
	if a := r.want(http.StatusOK, "GET", "zones/file.example/export", ""); !strings.Contains(a.body, "SOA") || !strings.Contains(a.body, "192.0.2.53") {
		t.Error(a.body)
	}
	var sets struct {
		RRsets []rrsetView
		More   bool
	}
	r.want(http.StatusOK, "GET", "zones/file.example/rrsets?type=A&limit=1&skip=1", "").json(t, &sets)
	if len(sets.RRsets) != 1 || sets.More || fmt.Sprint(sets.RRsets[0]) != "{www.file.example. A 300 [192.0.2.1 192.0.2.2]}" {
		t.Errorf("%+v", sets)
	}
	r.want(http.StatusConflict, "PATCH", "zones/file.example/rrsets", `{"ops":[{"do":"delete","name":"www"}]}`)
	r.imports(http.StatusConflict, "file.example", strings.NewReader(master))
	r.want(http.StatusConflict, "POST", "zones", `{"name":"file.example","ns":["ns1.example.net."]}`)
	r.want(http.StatusConflict, "DELETE", "zones/file.example", "")
}

// records is a master file of n records, in which that line is wrong; 0 is none.
func records(n, wrong int) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := fmt.Fprint(w, "@ 300 IN SOA ns1 hostmaster 1 3600 900 86400 300\n@ 300 IN NS ns1\n")
		for i := 3; i <= n && err == nil; i++ {
			if i == wrong {
				_, err = fmt.Fprint(w, "host 300 IN A 192.0.2.300\n")
				continue
			}
			_, err = fmt.Fprintf(w, "h%d 300 IN A 10.%d.%d.%d\n", i, i>>16&255, i>>8&255, i&255)
		}
		_ = w.CloseWithError(err)
	}()
	return r
}

// A large zone comes whole, and one with a mistake far behind changes nothing and is
// told where.
func TestImport(t *testing.T) {
	n := 20_000
	r := newRig(t, nil)
	r.imports(http.StatusOK, "big.example", records(n, 0))
	if z := r.world.served["big.example."]; z == nil || z.Records() != n {
		t.Fatalf("%v", z)
	}
	before := r.world.served["big.example."]
	a := r.imports(http.StatusUnprocessableEntity, "big.example", records(n, n*9/10))
	if !strings.Contains(a.body, fmt.Sprintf(`"line":%d`, n*9/10)) {
		t.Error(a.body)
	}
	if r.world.served["big.example."] != before {
		t.Error("something has changed")
	}
	r.imports(http.StatusUnprocessableEntity, "other.example", strings.NewReader(""))
	r.imports(http.StatusUnprocessableEntity, "other.example", strings.NewReader("$INCLUDE /etc/passwd\n"))
	r.head = map[string]string{"Content-Type": "image/png"}
	if a := r.raw("PUT", prefix+"zones/other.example/import", strings.NewReader(master), false); a.code != http.StatusUnsupportedMediaType {
		t.Errorf("%d %s", a.code, a.body)
	}
}
