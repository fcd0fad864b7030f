package sections

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/qlog/sink"
)

// entry is a row without its type: what the manual needs.
type entry struct {
	path, key, want, preset, none, example, doc string

	must, list bool
	keys       []entry
}

// manual is every key of level 1.
func manual() []entry { return entries("", table) }

func entries[T any](path string, rows []row[T]) []entry {
	all := make([]entry, 0, len(rows))
	for _, row := range rows {
		e := entry{
			path: join(path, row.key), key: row.key, want: row.value.want, preset: row.preset, none: row.none,
			example: row.example, doc: row.doc, must: row.must, list: row.value.list,
		}
		if row.value.keys != nil {
			e.keys = row.value.keys(e.path)
		}
		all = append(all, e)
	}
	return all
}

const intro = `# Configuration

<!-- Generated from the tables in internal/config/sections. Change those, then
run: go test ./internal/config/sections -run TestManual -update -->

A configuration is a file of YAML, or of JSON or TOML where its name ends in
` + "`.json` or `.toml`, given with `-c FILE`" + `. Every section may be left
out; what is not configured is off. ` + "`waymark check -c FILE`" + ` tells everything that
is wrong with a file, each problem with its line and column, and changes nothing.

- **A duration** is a number with its unit: ` + "`500ms`, `10s`, `5m`, `1h30m`, `1d`" + `.
- **A size** is a number with its unit: ` + "`64MiB`, `1GiB`" + `; also ` + "`KB`" + `, 1000 octets, and so on.
- **A path** that does not start with ` + "`/`" + ` starts in the folder of the configuration.
- **True** may also be written ` + "`yes` or `on`, and false `no` or `off`" + `.
- **A list** of one may be written without its dash.
- An unknown key, a key written twice and a value of the wrong kind are problems:
  nothing is guessed.
- Anchors (` + "`&name`) and aliases (`*name`" + `) may stand for whole values. Merge keys
  (` + "`<<`" + `), tags (` + "`!!str`" + `) and more than one document are refused.
- The file is UTF-8, indented with spaces, and at most 16 MiB.
`

const level2 = `
## Plugins

A file with ` + "`plugins:`" + ` at its top is one of mosdns v5: plugins with ` + "`tag`, `type` and `args`" + `, and
sequences of rules. Its keys mean what they mean there:

- At the top stand ` + "`log`, `include`, `plugins` and `api`" + `. Of the sections of this page,
  ` + "`zones`, `server`, `metrics`, `control` and `history`" + ` may stand beside them; a sequence answers from the zones
  with ` + "`exec: zone`" + `. Everyone may ask, unless a rule says otherwise.
- ` + "`log`" + ` also takes the levels of mosdns: ` + "`dpanic`, `panic` and `fatal` are `error`" + `.
- A plugin must stand behind those that it refers to. Paths start in the working directory, which
  ` + "`-d DIR`" + ` sets.
- Numbers, texts and truth values stand in for one another, and one value for a list of one.
- Merge keys and standard tags are taken. An unknown key is a problem, as above.
- ` + "`waymark check --explain -c FILE`" + ` writes any configuration down as plugins.

` + "```yaml" + `
plugins:
  - {tag: main, type: sequence, args: [{exec: reject 3}]}
  - {type: udp_server, args: {entry: main, listen: "127.0.0.1:5353"}}
` + "```" + `
`

// Manual is the reference of level 1 in Markdown.
func Manual() string {
	var b strings.Builder
	b.WriteString(intro)
	all := manual()
	b.WriteString("\n## All of it\n\n```yaml\n")
	writeYAML(&b, all, "")
	b.WriteString("```\n")
	for _, e := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```yaml\n", e.key, e.doc)
		writeYAML(&b, []entry{e}, "")
		b.WriteString("```\n")
		if len(e.keys) > 0 {
			b.WriteString("\n| key | value | default | range | meaning |\n|---|---|---|---|---|\n")
			writeRows(&b, e.keys, "")
		}
		if e.key == rulesRow.key {
			b.WriteString(words())
		}
		if e.key == queryLogRow.key {
			b.WriteString(sink.Manual())
		}
	}
	b.WriteString(level2)
	b.WriteString("\n## Not in this version yet\n\nThese sections are known, and refused by name: ")
	names := slices.Clone(later)
	for i, name := range names {
		names[i] = "`" + name + "`"
	}
	b.WriteString(strings.Join(names, ", ") + ".\n")
	return b.String()
}

// writeYAML writes the examples of the entries as a configuration.
func writeYAML(b *strings.Builder, all []entry, indent string) {
	for _, e := range all {
		switch {
		case e.list && len(e.keys) > 0 && !strings.Contains(e.example, "\n"):
			var inner strings.Builder
			writeYAML(&inner, e.keys, indent+"    ")
			fmt.Fprintf(b, "%s%s:\n%s  - %s", indent, e.key, indent, strings.TrimLeft(inner.String(), " "))
		case e.list:
			fmt.Fprintf(b, "%s%s:\n", indent, e.key)
			for line := range strings.SplitSeq(e.example, "\n") {
				fmt.Fprintf(b, "%s  - %s\n", indent, line)
			}
		case len(e.keys) > 0:
			fmt.Fprintf(b, "%s%s:\n", indent, e.key)
			writeYAML(b, e.keys, indent+"  ")
		default:
			fmt.Fprintf(b, "%s%s: %s\n", indent, e.key, e.example)
		}
	}
}

// writeRows writes the rows of a section's table, those of inner sections
// behind their own.
func writeRows(b *strings.Builder, all []entry, prefix string) {
	for _, e := range all {
		name := prefix + e.key
		if len(e.keys) > 0 {
			fmt.Fprintf(b, "| `%s` | %s | | | %s |\n", name, e.values(), e.doc)
			writeRows(b, e.keys, name+".")
			continue
		}
		preset, span := cmp.Or(e.none, "off"), ""
		switch {
		case e.must:
			preset = "must be given"
		case e.preset != "":
			preset = "`" + e.preset + "`"
		}
		if least, greatest, ok := plan.Range(e.path); ok {
			span = least + " to " + greatest
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", name, e.values(), preset, span, e.doc)
	}
}

// values is what the manual says about the value.
func (e entry) values() string {
	if e.list {
		return e.want + ", or a list"
	}
	return e.want
}
