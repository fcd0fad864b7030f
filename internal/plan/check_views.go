package plan

import (
	"fmt"
	"net/netip"
	"strings"
)

const (
	maxViews = 1000
	maxName  = 64 // octets

	// maxHints is how many problems are worth a hint that takes a search.
	maxHints = 100
	// maxNamed is how many names a mend lists.
	maxNamed = 10
)

func (c *checker) allViews() {
	all := false
	for i, v := range c.plan.Views {
		path := fmt.Sprintf("views[%d]", i)
		if i == maxViews {
			c.add(v.Pos, "use fewer", "more than %d views", maxViews)
			break
		}
		c.name(v.Pos, "view", v.Name)
		if pos, ok := c.views[v.Name]; ok {
			c.add(v.Pos, "give each a name of its own", "view %s is named twice, first at %s", v.Name, pos)
		} else if v.Name != "" {
			c.views[v.Name] = v.Pos
		}
		if last := len(c.plan.Views) - 1; len(v.Clients)+len(v.Listen) == 0 && i < last && !all {
			c.add(v.Pos, "put it last", "view %s is for every query: those behind it are never taken", v.Name)
			all = true
		}
		c.prefixes(path+".clients", "views.clients", v.Clients)
		for j, l := range v.Listen {
			c.listener(c.plan.At(fmt.Sprintf("%s.listen[%d]", path, j)), "views.listen", l)
		}
	}
	for i, z := range c.plan.Zones {
		c.viewsExist(fmt.Sprintf("zones[%d]", i), "zone "+z.Name.String(), z.Views)
	}
	for i, f := range c.plan.Forward {
		c.viewsExist(fmt.Sprintf("forward[%d]", i), "forward.views", f.Views)
	}
}

// name checks the name of a view or a set.
func (c *checker) name(pos Pos, what, name string) {
	strange := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	switch {
	case name == "":
		c.add(pos, "give it one", "%s without a name", what)
	case len(name) > maxName:
		c.add(pos, "shorten it", "%ss.name: %d octets, and a %[1]s's name has at most %[3]d", what, len(name), maxName)
	case strings.ContainsFunc(name, strange):
		c.add(pos, "use letters, digits, - and _", "%ss.name: %q is no name of a %[1]s", what, name)
	}
}

// viewsExist checks the views that the value at path is for; name is how people
// call it.
func (c *checker) viewsExist(path, name string, views []string) {
	for i, view := range views {
		if _, ok := c.views[view]; ok {
			continue
		}
		known := make([]string, 0, maxViews)
		for _, v := range c.plan.Views[:min(len(c.plan.Views), maxViews)] {
			known = append(known, v.Name)
		}
		c.add(c.plan.At(fmt.Sprintf("%s.views[%d]", path, i)), c.meant(view, known, "add it under views"), "%s: there is no view %q", name, view)
	}
}

// meant is the mend for a word that is not known: the nearest that is, or all,
// or the last resort where there are none.
func (c *checker) meant(word string, known []string, none string) string {
	if len(known) == 0 || len(c.problems) > maxHints {
		return none
	}
	if near := Nearest(word, known); near != "" {
		return "write " + near
	}
	if len(known) > maxNamed {
		return "known are " + strings.Join(known[:maxNamed], ", ") + " and more"
	}
	return "known are " + strings.Join(known, ", ")
}

// listener checks that l, named by the key with this name, is one of those
// that the server has.
func (c *checker) listener(pos Pos, name string, l Listen) {
	if !l.Addr.IsValid() {
		c.add(pos, "name one of those under listen", "%s: no listener", name)
		return
	}
	known := make([]string, len(c.plan.Listen))
	for i, o := range c.plan.Listen {
		if o.Scheme == l.Scheme && o.Addr == l.Addr {
			return
		}
		known[i] = o.String()
	}
	c.add(pos, c.meant(l.String(), known, "add it under listen"), "%s: %s is not under listen", name, l)
}

// prefixes checks what sets of addresses are made of.
func (c *checker) prefixes(path, name string, prefixes []netip.Prefix) {
	for i, p := range prefixes {
		pos := c.plan.At(fmt.Sprintf("%s[%d]", path, i))
		switch {
		case !p.IsValid():
			c.add(pos, "write for example 10.0.0.0/8", "%s: no prefix", name)
		case p != p.Masked():
			c.add(pos, "write "+p.Masked().String(), "%s: %s has bits below the prefix", name, p)
		}
	}
}
