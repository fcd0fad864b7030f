package mosdns

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
)

// plugin is one entry of plugins.
type plugin struct {
	pos       plan.Pos
	tag, kind string
	kindPos   plan.Pos
	args      *tree.Node // may be nil
}

// pluginKeys are the keys of an entry.
var pluginKeys = []string{"tag", "type", "args"}

// plugin reads one entry.
func (f *file) plugin(n *tree.Node) {
	if n.Kind == tree.Broken {
		return
	}
	if n.Kind != tree.Mapping {
		f.src.Problem(n.Pos, "write for example {tag: main, type: sequence, args: []}", "plugins: expected keys and values, got %s", n.Describe())
		return
	}
	d := &decoder{src: f.src}
	p := plugin{pos: n.Pos, kindPos: n.Pos}
	tagPos := n.Pos
	for _, pair := range d.pairs(n, pluginKeys, "plugins") {
		switch strings.ToLower(pair.Key) {
		case "tag":
			d.into(pair.Value, &p.tag, "tag")
			tagPos = pair.Value.Pos
		case "type":
			d.into(pair.Value, &p.kind, "type")
			p.kindPos = pair.Value.Pos
		case "args":
			p.args = pair.Value
		}
	}
	// Each counts, and the one that is there without being written.
	f.plugins++
	if p.tag == "" {
		p.tag = fmt.Sprintf("anonymouse_%s_%d", p.kind, f.plugins)
	}
	if first, ok := f.tags[p.tag]; ok {
		what := "is there without being written"
		if first.pos.File != "" {
			what = "is taken, first at " + first.pos.String()
		}
		f.src.Problem(tagPos, "choose another", "plugin %s: the tag %s", p.tag, what)
	}
	made := thing{f.make(p), tagPos}
	if _, ok := f.tags[p.tag]; !ok {
		f.tags[p.tag] = made
	}
}

// make adds the plugin to the plan, or tells why that cannot be.
func (f *file) make(p plugin) is {
	switch p.kind {
	case "":
		f.src.Problem(p.kindPos, "add for example type: sequence", "plugin %s: the key type is missing", p.tag)
		return broken
	case "sequence":
		f.sequence(p)
		return sequence
	case "udp_server":
		f.udpServer(p)
		return server
	case "tcp_server":
		f.tcpServer(p)
		return server
	}
	i := slices.IndexFunc(f.Tables.Objects, func(k act.ObjectKind) bool { return k.Type == p.kind })
	if i < 0 {
		f.unknownType(p)
		return broken
	}
	f.object(p, f.Tables.Objects[i])
	return object
}

func (f *file) unknownType(p plugin) {
	known := []string{"sequence", "udp_server", "tcp_server"}
	for _, k := range f.Tables.Objects {
		known = append(known, k.Type)
	}
	switch {
	case slices.Contains(allPlugins, p.kind):
		f.src.Problem(p.kindPos, "", "plugin %s: type %s is not in this version yet", p.tag, p.kind)
	case slices.Contains(f.Tables.Actions, p.kind) || slices.Contains(allActions, p.kind):
		f.src.Problem(p.kindPos, "write exec: "+p.kind+" in a sequence", "plugin %s: %s is no type of plugin", p.tag, p.kind)
	case slices.Contains(f.Tables.Matchers, p.kind) || slices.Contains(allMatchers, p.kind):
		f.src.Problem(p.kindPos, "write matches: "+p.kind+" in a sequence", "plugin %s: %s is no type of plugin", p.tag, p.kind)
	default:
		mend := "known are " + strings.Join(known, ", ")
		if near := plan.Nearest(p.kind, slices.Concat(known, allPlugins)); near != "" {
			mend = "write " + near
		}
		f.src.Problem(p.kindPos, mend, "plugin %s: unknown type %s", p.tag, tree.Quote(p.kind))
	}
}

// object adds an object with its arguments.
func (f *file) object(p plugin, kind act.ObjectKind) {
	o := plan.Object{Pos: p.pos, Tag: p.tag, Type: p.kind}
	d := &decoder{src: f.src, where: f.plan.Where, prefix: "plugins." + p.tag}
	if kind.Args == nil {
		d.into(p.args, &struct{}{}, p.kind)
	} else {
		o.Args = kind.Args()
		d.into(p.args, o.Args, p.kind)
	}
	f.refers(p)
	f.order++
	o.Order = f.order
	f.plan.Objects = append(f.plan.Objects, o)
}

// refers looks up the plugins that the arguments name.
func (f *file) refers(p plugin) {
	if p.args == nil {
		return
	}
	for _, pair := range p.args.Pairs {
		if !slices.Contains(references[p.kind], strings.ToLower(pair.Key)) {
			continue
		}
		for _, n := range items(pair.Value) {
			if tag := wordOf(n).string(); n.Kind == tree.Scalar && tag != "" {
				f.find(n.Pos, tag)
			}
		}
	}
}

// find is what a tag stands for; one that is not there is noted, and may be
// anything.
func (f *file) find(pos plan.Pos, tag string) is {
	t, ok := f.tags[tag]
	if !ok {
		f.missing = append(f.missing, missing{f.src, pos, tag})
		return broken
	}
	if tag == sleepTag && !f.slept {
		f.slept = true
		f.sleep(pos)
	}
	return t.is
}

// sleep adds the plugin that need not be written.
func (f *file) sleep(pos plan.Pos) {
	i := slices.IndexFunc(f.Tables.Objects, func(k act.ObjectKind) bool { return k.Type == sleepType && k.Args != nil })
	if i < 0 {
		f.src.Problem(pos, "", "plugin %s is not in this version yet", sleepTag)
		return
	}
	args := &tree.Node{Kind: tree.Mapping, Pairs: []tree.Pair{{
		Key: "duration", Value: &tree.Node{Kind: tree.Scalar, Text: strconv.Itoa(sleepMS)},
	}}}
	f.object(plugin{pos: pos, tag: sleepTag, kind: sleepType, args: args}, f.Tables.Objects[i])
}
