package sink

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// The columns are those of a row, in its order.
func TestColumns(t *testing.T) {
	var want []string
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Anonymous {
				walk(f.Type)
				continue
			}
			want = append(want, f.Tag.Get("parquet"))
		}
	}
	walk(reflect.TypeFor[qlog.Row]())
	var got []string
	for _, c := range columns {
		got = append(got, c.name)
		if (c.number == nil) == (c.text == nil) || c.sql == "" {
			t.Errorf("column %s: it has to have a type and one value", c.name)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// sameJSON compares with what the standard library writes.
func sameJSON(t *testing.T, row *qlog.Row) {
	t.Helper()
	text, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	ours := appendJSON(nil, row)
	if err := json.Unmarshal(ours, &got); err != nil {
		t.Fatalf("%s: %v", ours, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", ours, text)
	}
	for _, c := range ours {
		if c == '\n' {
			t.Errorf("more than one line: %q", ours)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{"", "a.example.", `\000\".example.`, "é\n\x00\xff\u2028<>&", "\x7f"} {
		f.Add(s, int64(1_700_000_000_000_000), uint16(53))
	}
	f.Fuzz(func(t *testing.T, text string, time int64, n uint16) {
		row := rows(0, 1)[0]
		sameJSON(t, &row)
		row.Time, row.ClientPort, row.Size, row.Latency = time, n, n, uint32(n)<<16
		row.Client, row.Name, row.Rule, row.Upstream, row.EDE, row.Answers, row.ECS = text, text, text, text, text, text, text
		sameJSON(t, &row)
	})
}
