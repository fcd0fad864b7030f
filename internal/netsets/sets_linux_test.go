package netsets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
)

// inNamespace is set in the environment of a test that has a network namespace to
// itself.
const inNamespace = "WAYMARK_TEST_NAMESPACE"

// alone is true in a network namespace of the test's own; elsewhere it runs the
// test there.
func alone(t *testing.T, without ...string) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	if len(without) > 0 {
		c = exec.Command(without[0], append(without[1:], c.Args...)...)
	}
	c.Env = append(os.Environ(), inNamespace+"=1", "GORACE=atexit_sleep_ms=0")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := c.CombinedOutput()
	switch {
	case err != nil && strings.Contains(err.Error(), "operation not permitted"):
		t.Skip("no network namespaces here")
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("%s", out)
	}
	return false
}

// kernel is a writer to this namespace's sets.
type kernel struct {
	t   *testing.T
	log bytes.Buffer
	now atomic.Int64
	*Writer
}

func newKernel(t *testing.T) *kernel {
	k := &kernel{t: t}
	k.Writer = NewWriter(func() time.Duration { return time.Duration(k.now.Load()) }, slog.New(slog.NewTextHandler(&k.log, nil)))
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// add adds addresses to a target, waits until they are written, and checks that
// so many addresses failed so far.
func (k *kernel) add(one Target, addrs string, failed uint64) {
	k.t.Helper()
	for _, s := range strings.Fields(addrs) {
		k.Add(&one, netip.MustParseAddr(s))
	}
	if err := k.Flush(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	if c := k.Counts(); c.Failed != failed || c.Dropped != 0 {
		k.t.Errorf("adding %s to %s: %+v, want %d failed\n%s", addrs, one.String(), c, failed, &k.log)
	}
}

// pass lets the writer forget what it wrote and knows.
func (k *kernel) pass() { k.now.Add(int64(keepWritten)) }

func nftTarget(t *testing.T, args string) Target {
	t.Helper()
	all, err := ParseNFTSet(args)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %v, %v", args, all, err)
	}
	return all[0]
}

// tables is nftables as the test sees it.
type tables struct {
	t *testing.T
	*nftables.Conn
}

func newTables(t *testing.T) tables {
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	return tables{t, c}
}

func (n tables) flush() {
	n.t.Helper()
	if err := n.Flush(); err != nil {
		n.t.Fatal(err)
	}
}

// table makes a table, where there is none of that name yet.
func (n tables) table(family nftables.TableFamily, name string) *nftables.Table {
	n.t.Helper()
	table := n.AddTable(&nftables.Table{Family: family, Name: name})
	if err := n.Flush(); err != nil {
		n.t.Skipf("this kernel has no nftables: %v", err)
	}
	return table
}

// set makes a set.
func (n tables) set(s *nftables.Set, elements ...nftables.SetElement) *nftables.Set {
	n.t.Helper()
	if err := n.AddSet(s, elements); err != nil {
		n.t.Fatal(err)
	}
	n.flush()
	return s
}

// has checks what is in a set: addresses, or first and the one behind the last.
func (n tables) has(s *nftables.Set, want ...string) {
	n.t.Helper()
	all, err := n.GetSetElements(s)
	if err != nil {
		n.t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b nftables.SetElement) int {
		if c := bytes.Compare(a.Key, b.Key); c != 0 || a.IntervalEnd == b.IntervalEnd {
			return c
		} else if a.IntervalEnd {
			return -1
		}
		return 1
	})
	var got []string
	for _, e := range all {
		a, _ := netip.AddrFromSlice(e.Key)
		switch n := len(got); {
		case e.IntervalEnd && n > 0 && !strings.Contains(got[n-1], "-"):
			got[n-1] += "-" + a.String()
		case e.IntervalEnd && a.IsUnspecified(): // how the kernel says that the set begins with nothing
		case e.IntervalEnd:
			got = append(got, "-"+a.String())
		default:
			got = append(got, a.String())
		}
	}
	if !slices.Equal(got, want) {
		n.t.Errorf("set %s has %q, want %q", s.Name, got, want)
	}
}

func TestNFT(t *testing.T) {
	if !alone(t) {
		return
	}
	n := newTables(t)
	k := newKernel(t)
	families := map[string]nftables.TableFamily{"ip": nftables.TableFamilyIPv4, "ip6": nftables.TableFamilyIPv6, "inet": nftables.TableFamilyINet}
	for i, c := range []struct {
		name, target string // of the target all but the set
		interval     bool
		add          string
		want         []string
	}{
		{"plain", "inet ipv4_addr,24", false, "192.0.2.1 192.0.2.77 192.0.2.1", []string{"192.0.2.1", "192.0.2.77"}},
		{"plain 6", "inet ipv6_addr,48", false, "2001:db8::2 2001:db8::1", []string{"2001:db8::1", "2001:db8::2"}},
		{"plain, table ip", "ip ipv4_addr,24", false, "192.0.2.1", []string{"192.0.2.1"}},
		{"plain, table ip6", "ip6 ipv6_addr,48", false, "2001:db8::1", []string{"2001:db8::1"}},
		{"interval", "inet ipv4_addr,24", true, "192.0.2.1 192.0.2.77 198.51.100.9", []string{"192.0.2.0-192.0.3.0", "198.51.100.0-198.51.101.0"}},
		{"interval 6", "inet ipv6_addr,48", true, "2001:db8:1:2::3 2001:db8:1:3::4", []string{"2001:db8:1::-2001:db8:2::"}},
		{"interval of whole addresses", "inet ipv4_addr,32", true, "192.0.2.255", []string{"192.0.2.255-192.0.3.0"}},
		{"interval of odd length", "ip ipv4_addr,23", true, "192.0.3.1", []string{"192.0.2.0-192.0.4.0"}},
		{"neighbours", "inet ipv4_addr,24", true, "192.0.3.1 192.0.2.1", []string{"192.0.2.0-192.0.3.0", "192.0.3.0-192.0.4.0"}},
		{"the last prefix of all", "inet ipv4_addr,24", true, "255.255.255.255", []string{"255.255.255.0"}},
		{"the last prefix of all 6", "ip6 ipv6_addr,48", true, "ffff:ffff:ffff::1", []string{"ffff:ffff:ffff::"}},
		{"the first prefix of all", "inet ipv4_addr,24", true, "0.0.0.1", []string{"0.0.0.0-0.0.1.0"}},
	} {
		family, rest, _ := strings.Cut(c.target, " ")
		set := &nftables.Set{Table: n.table(families[family], "t"), Name: fmt.Sprintf("s%d", i), KeyType: nftables.TypeIPAddr, Interval: c.interval}
		if strings.HasPrefix(rest, "ipv6") {
			set.KeyType = nftables.TypeIP6Addr
		}
		n.set(set)
		k.add(nftTarget(t, family+",t,"+set.Name+","+rest), c.add, 0)
		t.Log(c.name)
		n.has(set, c.want...)
		k.pass()
		k.add(nftTarget(t, family+",t,"+set.Name+","+rest), c.add, 0) // what is there may be added again
		n.has(set, c.want...)
	}
}

// An interval set's elements do not overlap: where the prefix does not fit, the
// address is in the set all the same.
func TestNFTOverlap(t *testing.T) {
	if !alone(t) {
		return
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("no command nft: apt-get install nftables")
	}
	n := newTables(t)
	k := newKernel(t)
	table := n.table(nftables.TableFamilyINet, "t")
	for i, c := range []struct{ there, add string }{
		{"192.0.2.128/25", "192.0.2.200 192.0.2.1"},
		{"192.0.2.0/25", "192.0.2.200"},
		{"192.0.2.0/25", "192.0.2.1"},
		{"192.0.2.64/26", "192.0.2.1 192.0.2.100 192.0.2.200"},
		{"192.0.0.0/16", "192.0.2.1"},
		{"192.0.2.0/24, 192.0.3.0/25", "192.0.2.1 192.0.3.200"},
		{"192.0.1.5-192.0.2.5", "192.0.2.1 192.0.2.200"},
		{"192.0.2.77", "192.0.2.77 192.0.2.78 192.0.2.1"},
		{"192.0.2.0-192.0.2.9, 192.0.2.20-192.0.2.30", "192.0.2.1 192.0.2.15 192.0.2.25 192.0.2.99"},
		{"0.0.0.0/0", "192.0.2.1"},
	} {
		set := n.set(&nftables.Set{Table: table, Name: fmt.Sprintf("s%d", i), KeyType: nftables.TypeIPAddr, Interval: true})
		nft(t, "add element inet t "+set.Name+" { "+c.there+" }")
		k.add(nftTarget(t, "inet,t,"+set.Name+",ipv4_addr,24"), c.add+" 198.51.100.1", 0)
		for _, a := range append(strings.Fields(c.add), "198.51.100.1") {
			nft(t, "get element inet t "+set.Name+" { "+a+" }")
		}
		if out, err := exec.Command("nft", "get element inet t "+set.Name+" { 203.0.113.1 }").Output(); err == nil && c.there != "0.0.0.0/0" {
			t.Errorf("%s: an address that nobody added is in the set: %s", c.there, out)
		}
	}
}

// nft runs the command of that name.
func nft(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("nft", line).CombinedOutput(); err != nil {
		list, _ := exec.Command("nft", "list", "ruleset").Output()
		t.Errorf("nft %s: %v\n%s\n%s", line, err, out, list)
	}
}

func TestNFTMissing(t *testing.T) {
	if !alone(t) {
		return
	}
	n := newTables(t)
	k := newKernel(t)
	one := nftTarget(t, "inet,t,s,ipv4_addr,24")
	k.add(one, "192.0.2.1", 1)
	table := n.table(nftables.TableFamilyINet, "t")
	k.add(one, "192.0.2.1", 2)
	if text := k.log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "there is none of that name") {
		t.Errorf("logged %s", text)
	}
	set := n.set(&nftables.Set{Table: table, Name: "s", KeyType: nftables.TypeIPAddr})
	k.add(one, "192.0.2.1", 2)
	n.has(set, "192.0.2.1")

	// Made anew, with intervals.
	n.DelSet(set)
	n.flush()
	k.add(one, "192.0.4.1", 3)
	set = n.set(&nftables.Set{Table: table, Name: "s", KeyType: nftables.TypeIPAddr, Interval: true})
	k.add(one, "192.0.2.1", 3)
	n.has(set, "192.0.2.0-192.0.3.0")

	// Made anew, unseen by the writer until it looks again.
	n.DelSet(set)
	set = n.set(&nftables.Set{Table: table, Name: "s", KeyType: nftables.TypeIPAddr, Interval: true})
	k.now.Add(int64(lookAgain))
	k.add(one, "192.0.5.1", 3)
	k.add(one, "192.0.2.1", 3)
	n.has(set, "192.0.2.0-192.0.3.0", "192.0.5.0-192.0.6.0")
}

func TestNFTWrongSet(t *testing.T) {
	if !alone(t) {
		return
	}
	n := newTables(t)
	k := newKernel(t)
	table := n.table(nftables.TableFamilyINet, "t")
	n.set(&nftables.Set{Table: table, Name: "six", KeyType: nftables.TypeIP6Addr})
	n.set(&nftables.Set{Table: table, Name: "map", KeyType: nftables.TypeIPAddr, IsMap: true, DataType: nftables.TypeIPAddr})
	k.add(nftTarget(t, "inet,t,six,ipv4_addr,24"), "192.0.2.1", 1)
	k.add(nftTarget(t, "inet,t,map,ipv4_addr,24"), "192.0.2.1", 2)
	if text := k.log.String(); !strings.Contains(text, "its elements have 16 octets, want 4") || !strings.Contains(text, "it is a map") {
		t.Errorf("logged %s", text)
	}
}

// Elements that time out are written again in time.
func TestNFTTimeout(t *testing.T) {
	if !alone(t) {
		return
	}
	n := newTables(t)
	k := newKernel(t)
	set := n.set(&nftables.Set{Table: n.table(nftables.TableFamilyINet, "t"), Name: "s", KeyType: nftables.TypeIPAddr, HasTimeout: true, Timeout: 40 * time.Second})
	one := nftTarget(t, "inet,t,s,ipv4_addr,24")
	k.add(one, "192.0.2.1", 0)
	n.has(set, "192.0.2.1")
	n.FlushSet(set)
	n.flush()
	k.now.Add(int64(10*time.Second) - 1)
	k.add(one, "192.0.2.1", 0)
	n.has(set)
	k.now.Add(1)
	k.add(one, "192.0.2.1", 0)
	n.has(set, "192.0.2.1")
}

// Many addresses go in whole batches, and all arrive, as nft lists them.
func TestNFTMany(t *testing.T) {
	if !alone(t) {
		return
	}
	n := newTables(t)
	k := newKernel(t)
	n.set(&nftables.Set{Table: n.table(nftables.TableFamilyINet, "t"), Name: "s", KeyType: nftables.TypeIP6Addr, Interval: true})
	var addrs []string
	for i := range 1000 {
		addrs = append(addrs, fmt.Sprintf("2001:db8:%x::1", 2*i))
	}
	k.add(nftTarget(t, "inet,t,s,ipv6_addr,48"), strings.Join(addrs, " "), 0)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("no command nft: apt-get install nftables")
	}
	out, err := exec.Command("nft", "-j", "list", "ruleset").Output()
	if err != nil {
		t.Fatal(err)
	}
	var listed struct {
		Nftables []struct {
			Set struct {
				Elem []struct {
					Prefix struct {
						Addr string
						Len  int
					}
				}
			}
		}
	}
	if err := json.Unmarshal(out, &listed); err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, one := range listed.Nftables {
		for _, e := range one.Set.Elem {
			if e.Prefix.Len == 48 && strings.HasPrefix(e.Prefix.Addr, "2001:db8:") {
				got++
			}
		}
	}
	if got != len(addrs) {
		t.Errorf("nft lists %d prefixes, want %d:\n%.400s", got, len(addrs), out)
	}
}

// Without the capability, the log names it.
func TestNoCapability(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("no command setpriv: apt-get install util-linux")
	}
	if !alone(t, "setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", "--") {
		return
	}
	k := newKernel(t)
	k.add(nftTarget(t, "inet,t,s,ipv4_addr,24"), "192.0.2.1", 1)
	k.add(ipsetTarget(t, "s,inet,24"), "192.0.2.1", 2)
	if got := strings.Count(k.log.String(), "CAP_NET_ADMIN"); got != 2 {
		t.Errorf("logged %s", &k.log)
	}
}
