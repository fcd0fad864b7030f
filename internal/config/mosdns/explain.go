package mosdns

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
)

// Explain writes a plan down as plugins: objects and programs, each behind those
// that it refers to, and the servers last. The reason for a rule stands in front of
// it as a comment.
//
// What comes of level 2 is level 2 again, in one file and with every tag, and gives
// an equal plan. Of level 1 it is what the sections compile to, without their
// data.
func (t Tables) Explain(p *plan.Plan) string {
	e := &explainer{tables: t}
	if p.Level2 {
		e.log(p)
		if len(p.Zones) > 0 || p.Server != plan.DefaultServer() || p.Metrics.Listen.IsValid() || p.Control.Path != "" {
			e.line(0, "# The sections beside the plugins are not shown.")
		}
	} else {
		e.line(0, "# The program that the sections compile to. Zones, upstreams and all other data")
		e.line(0, "# stay in the sections.")
	}
	e.line(0, "plugins:")
	objects, programs := p.Objects, p.Programs
	for len(objects)+len(programs) > 0 {
		if len(programs) == 0 || len(objects) > 0 && objects[0].Order < programs[0].Order {
			e.object(objects[0])
			objects = objects[1:]
			continue
		}
		e.program(programs[0])
		programs = programs[1:]
	}
	for _, l := range p.Listen {
		e.server(l, p.Programs)
	}
	return e.b.String()
}

type explainer struct {
	tables Tables
	b      strings.Builder
}

func (e *explainer) line(indent int, format string, args ...any) {
	e.b.WriteString(strings.Repeat("  ", indent))
	fmt.Fprintf(&e.b, format, args...)
	e.b.WriteByte('\n')
}

func (e *explainer) log(p *plan.Plan) {
	e.line(0, "log:")
	e.line(1, "level: %s", yamlText(p.Log.Level))
	if p.Log.File != "" {
		e.line(1, "file: %s", yamlText(p.Log.File))
	}
	if p.Log.JSON {
		e.line(1, "production: true")
	}
	if p.API.HTTP != "" {
		e.line(0, "api:")
		e.line(1, "http: %s", yamlText(p.API.HTTP))
		if p.API.Token != "" {
			e.line(1, "token: %s", yamlText(p.API.Token))
		}
	}
}

// head begins a plugin.
func (e *explainer) head(tag, typ string) {
	first := "- tag: "
	if tag == "" {
		first = "- "
	} else {
		e.line(1, "%s%s", first, yamlText(tag))
		first = "  "
	}
	e.line(1, "%stype: %s", first, typ)
}

func (e *explainer) object(o plan.Object) {
	if o.Tag == sleepTag {
		return // it is there without being written
	}
	e.head(o.Tag, o.Type)
	i := slices.IndexFunc(e.tables.Objects, func(k act.ObjectKind) bool { return k.Type == o.Type })
	if i < 0 || o.Args == nil || e.tables.Objects[i].Args == nil {
		return
	}
	preset := reflect.ValueOf(e.tables.Objects[i].Args()).Elem()
	v := reflect.ValueOf(o.Args).Elem()
	if reflect.DeepEqual(v.Interface(), preset.Interface()) {
		return
	}
	e.line(2, "args:")
	e.fields(3, "", v, preset)
}

// fields writes the fields that are not as in preset. lead stands in front of the
// first in place of its indentation.
func (e *explainer) fields(indent int, lead string, v, preset reflect.Value) {
	fields, _ := fieldsOf(v.Type())
	for _, f := range fields {
		have, was := v.Field(f.index), preset.Field(f.index)
		if reflect.DeepEqual(have.Interface(), was.Interface()) {
			continue
		}
		depth := indent
		if lead != "" {
			e.b.WriteString(strings.Repeat("  ", indent-1) + lead)
			depth, lead = 0, ""
		}
		switch {
		case have.Kind() == reflect.Struct:
			e.line(depth, "%s:", f.key)
			e.fields(indent+1, "", have, was)
		case have.Kind() == reflect.Slice && have.Len() == 0:
			e.line(depth, "%s: []", f.key)
		case have.Kind() == reflect.Slice:
			e.line(depth, "%s:", f.key)
			e.list(indent+1, have)
		default:
			e.line(depth, "%s: %s", f.key, yamlValue(have))
		}
	}
	if lead != "" {
		e.line(indent-1, "- {}")
	}
}

func (e *explainer) list(indent int, v reflect.Value) {
	for i := range v.Len() {
		if item := v.Index(i); item.Kind() == reflect.Struct {
			e.fields(indent+1, "- ", item, reflect.Zero(item.Type()))
			continue
		}
		e.line(indent, "- %s", yamlValue(v.Index(i)))
	}
}

func (e *explainer) program(p plan.Program) {
	e.head(p.Name, "sequence")
	if len(p.Rules) == 0 {
		return
	}
	e.line(2, "args:")
	for _, r := range p.Rules {
		if r.Why != "" {
			e.line(3, "# %s", r.Why)
		}
		switch len(r.If) {
		case 0:
			e.line(3, "- exec: %s", yamlText(r.Do.String()))
			continue
		case 1:
			e.line(3, "- matches: %s", yamlText(r.If[0].String()))
		default:
			e.line(3, "- matches:")
			for _, t := range r.If {
				e.line(5, "- %s", yamlText(t.String()))
			}
		}
		e.line(3, "  exec: %s", yamlText(r.Do.String()))
	}
}

func (e *explainer) server(l plan.Listen, programs []plan.Program) {
	entry := l.Entry
	if entry == "" && len(programs) > 0 {
		entry = programs[0].Name
	}
	e.head("", l.Scheme+"_server")
	e.line(2, "args:")
	e.line(3, "entry: %s", yamlText(entry))
	e.line(3, "listen: %s", yamlText(l.Addr.String()))
	if l.Idle > 0 {
		e.line(3, "idle_timeout: %d", int(l.Idle.Seconds()))
	}
}

// yamlValue is a scalar as YAML.
func yamlValue(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return yamlText(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// yamlText is a text as YAML: plain where that is the same text again for certain.
func yamlText(text string) string {
	if plainText(text) {
		return text
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteRune('\\')
			b.WriteRune(c)
		case c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x2028 || c == 0x2029 || c == 0xfeff:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// plainText reports whether a text needs no quotes: it begins with a letter or $,
// has nothing that means something in YAML, and is no word that does.
func plainText(text string) bool {
	if text == "" || text[len(text)-1] == ' ' || text[len(text)-1] == ':' {
		return false
	}
	for i, c := range []byte(text) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '$' || c == '_'
		inner := c >= '0' && c <= '9' || strings.IndexByte(" -./+:=@", c) >= 0
		if !letter && (i == 0 || !inner) || c == ':' && text[i+1] == ' ' {
			return false
		}
	}
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	return !slices.Contains(words, strings.ToLower(text))
}
