package plan

import "fmt"

// sets checks the sets of level 1; at level 2 the tags of plugins were checked when
// they were read.
func (c *checker) sets() {
	if c.plan.Level2 {
		return
	}
	first := map[string]Pos{}
	for i, o := range c.plan.Objects {
		c.name(o.Pos, "set", o.Tag)
		if pos, ok := first[o.Tag]; ok {
			c.add(o.Pos, "give each a name of its own", "set %s is named twice, first at %s", o.Tag, pos)
		} else if o.Tag != "" {
			first[o.Tag] = o.Pos
		}
		if o.Type == "" {
			c.add(c.plan.At(fmt.Sprintf("sets[%d].type", i)), "add type: domains, or type: addresses", "set %s: it does not say what it is a set of", o.Tag)
		}
	}
}
