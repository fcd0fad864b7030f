package netsets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// What golang.org/x/sys does not name: linux/netfilter/ipset/ip_set.h and
// linux/netfilter/nf_tables.h.
const (
	ipsetProtocol   = 6
	ipsetCmdList    = 7
	ipsetCmdAdd     = 9
	ipsetOnlyHeader = 4 // IPSET_FLAG_LIST_HEADER

	ipsetAttrProtocol = 1
	ipsetAttrSetName  = 2
	ipsetAttrFamily   = 5
	ipsetAttrFlags    = 6
	ipsetAttrData     = 7

	ipsetDataIP      = 1
	ipsetDataCIDR    = 3
	ipsetDataTimeout = 6

	ipsetAddrV4 = 1
	ipsetAddrV6 = 2

	ipsetErrCIDR = unix.Errno(4104)
	ipsetErrFull = unix.Errno(4352) // of every hash type

	nftaSetHandle = 16
)

// kernelSets is the kernel behind two sockets, which are opened when they are
// needed and closed when anything fails: what a reply belongs to is then certain.
type kernelSets struct {
	conn *netlink.Conn  // asks about sets, and adds to ipsets
	nft  *nftables.Conn // adds to sets of nftables
}

func newSets() sets { return &kernelSets{} }

func (k *kernelSets) close() error {
	var errs [2]error
	if k.conn != nil {
		errs[0] = k.conn.Close()
	}
	if k.nft != nil {
		errs[1] = k.nft.CloseLasting()
	}
	k.conn, k.nft = nil, nil
	return errors.Join(errs[:]...)
}

// call sends one message of a subsystem and returns the replies, or none of an
// acknowledgement.
func (k *kernelSets) call(subsystem, command, family uint8, flags netlink.HeaderFlags, attrs []byte) ([]netlink.Message, error) {
	if k.conn == nil {
		c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
		if err != nil {
			return nil, fmt.Errorf("opening a netlink socket: %w", err)
		}
		k.conn = c
	}
	replies, err := k.conn.Execute(netlink.Message{
		Header: netlink.Header{
			Type:  netlink.HeaderType(subsystem)<<8 | netlink.HeaderType(command),
			Flags: netlink.Request | flags,
		},
		Data: append([]byte{family, unix.NFNETLINK_V0, 0, 0}, attrs...),
	})
	if err != nil {
		_ = k.close() // the first error is the one that matters
	}
	return replies, err
}

func (k *kernelSets) look(t *Target) (about, error) {
	ask, subsystem := k.lookNFT, "nftables"
	if t.family == "" {
		ask, subsystem = k.lookIPSet, "ipset"
	}
	s, err := ask(t)
	switch {
	case errors.Is(err, unix.EPERM):
		err = fmt.Errorf("looking for the set: %w (the process needs the capability CAP_NET_ADMIN)", err)
	case errors.Is(err, unix.ENOENT):
		err = fmt.Errorf("looking for the set: there is none of that name: %w", err)
	case errors.Is(err, unix.EINVAL):
		err = fmt.Errorf("looking for the set: %w (has the kernel %s?)", err, subsystem)
	case err != nil:
		err = fmt.Errorf("looking for the set: %w", err)
	}
	return s, err
}

func (k *kernelSets) lookNFT(t *Target) (about, error) {
	e := netlink.NewAttributeEncoder()
	e.String(unix.NFTA_SET_TABLE, t.table)
	e.String(unix.NFTA_SET_NAME, t.set)
	attrs, err := e.Encode()
	if err != nil {
		return about{}, err
	}
	replies, err := k.call(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETSET, uint8(familyOf(t)), 0, attrs)
	if err != nil {
		return about{}, err
	}
	if len(replies) != 1 || len(replies[0].Data) < 4 {
		return about{}, fmt.Errorf("%d replies, want one", len(replies))
	}
	return readNFT(t, replies[0].Data[4:])
}

// readNFT reads the attributes of a set, and checks that it takes addresses of
// the target's family.
func readNFT(t *Target, attrs []byte) (about, error) {
	d, err := netlink.NewAttributeDecoder(attrs)
	if err != nil {
		return about{}, err
	}
	d.ByteOrder = binary.BigEndian
	var s about
	var flags, size uint32
	for d.Next() {
		switch d.Type() {
		case unix.NFTA_SET_FLAGS:
			flags = d.Uint32()
		case unix.NFTA_SET_KEY_LEN:
			size = d.Uint32()
		case unix.NFTA_SET_TIMEOUT:
			s.timeout = time.Duration(d.Uint64()) * time.Millisecond
		case nftaSetHandle:
			s.handle = d.Uint64()
		}
	}
	if err := d.Err(); err != nil {
		return about{}, err
	}
	want := uint32(4)
	if t.v6 {
		want = 16
	}
	switch {
	case flags&unix.NFT_SET_MAP != 0:
		return about{}, errors.New("it is a map")
	case size != want:
		return about{}, fmt.Errorf("its elements have %d octets, want %d", size, want)
	}
	s.interval = flags&unix.NFT_SET_INTERVAL != 0
	return s, nil
}

func familyOf(t *Target) nftables.TableFamily {
	switch t.family {
	case "ip":
		return nftables.TableFamilyIPv4
	case "ip6":
		return nftables.TableFamilyIPv6
	}
	return nftables.TableFamilyINet
}

func (k *kernelSets) lookIPSet(t *Target) (about, error) {
	e := netlink.NewAttributeEncoder()
	e.ByteOrder = binary.BigEndian
	e.Uint8(ipsetAttrProtocol, ipsetProtocol)
	e.String(ipsetAttrSetName, t.set)
	e.Uint32(ipsetAttrFlags|unix.NLA_F_NET_BYTEORDER, ipsetOnlyHeader)
	attrs, err := e.Encode()
	if err != nil {
		return about{}, err
	}
	replies, err := k.call(unix.NFNL_SUBSYS_IPSET, ipsetCmdList, unix.AF_UNSPEC, netlink.Dump, attrs)
	if err != nil {
		return about{}, err
	}
	s := about{interval: true}
	for _, r := range replies {
		if len(r.Data) < 4 {
			continue
		}
		if err := readIPSet(t, &s, r.Data[4:]); err != nil {
			return about{}, err
		}
	}
	return s, nil
}

// readIPSet reads the attributes of a set, and checks that it takes addresses of
// the target's family.
func readIPSet(t *Target, s *about, attrs []byte) error {
	d, err := netlink.NewAttributeDecoder(attrs)
	if err != nil {
		return err
	}
	d.ByteOrder = binary.BigEndian
	for d.Next() {
		switch d.Type() {
		case ipsetAttrFamily:
			if f := int(d.Uint8()); f != familyOfIPSet(t) && f != unix.AF_UNSPEC {
				return errors.New("it is of the other family")
			}
		case ipsetAttrData:
			d.Nested(s.readData)
		}
	}
	return d.Err()
}

// readData reads what an ipset was made with.
func (s *about) readData(d *netlink.AttributeDecoder) error {
	for d.Next() {
		if d.Type() == ipsetDataTimeout {
			s.timeout = time.Duration(d.Uint32()) * time.Second
		}
	}
	return nil
}

func (k *kernelSets) add(t *Target, s about, addrs []netip.Addr) (narrow bool, err error) {
	if t.family == "" {
		return false, k.addIPSet(t, addrs)
	}
	if !s.interval {
		return true, k.addNFT(t, s, elements(addrs, fullLength(addrs)))
	}
	err = k.addNFT(t, s, elements(addrs, t.bits))
	if len(addrs) > 1 || !errors.Is(err, unix.EEXIST) {
		return false, err
	}
	// The prefix overlaps another element. Either that covers the address, and
	// all is well, or there is room for the address alone.
	if err = k.addNFT(t, s, elements(addrs, fullLength(addrs))); errors.Is(err, unix.EEXIST) {
		err = nil
	}
	return true, err
}

func fullLength(addrs []netip.Addr) int { return addrs[0].BitLen() }

// element is one of nftables, by its first address and the one behind its last,
// which is invalid where there is none.
type element struct{ start, end netip.Addr }

// elements are the prefixes of sorted addresses, each once.
func elements(addrs []netip.Addr, bits int) []element {
	var all []element
	for _, a := range addrs {
		p, _ := a.Prefix(bits) // of the family that Takes says
		all = append(all, element{p.Addr(), behind(p)})
	}
	return slices.Compact(all)
}

// behind is the first address behind a prefix.
func behind(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last.Next()
}

// addNFT adds elements in one transaction: all of them or none.
func (k *kernelSets) addNFT(t *Target, s about, all []element) error {
	if k.nft == nil {
		c, err := nftables.New(nftables.AsLasting())
		if err != nil {
			return fmt.Errorf("opening a netlink socket: %w", err)
		}
		k.nft = c
	}
	set := &nftables.Set{Table: &nftables.Table{Name: t.table, Family: familyOf(t)}, Name: t.set}
	var keys []nftables.SetElement
	for _, e := range all {
		keys = append(keys, nftables.SetElement{Key: e.start.AsSlice()})
		if s.interval && e.end.IsValid() {
			keys = append(keys, nftables.SetElement{Key: e.end.AsSlice(), IntervalEnd: true})
		}
	}
	err := k.nft.SetAddElements(set, keys)
	if err == nil {
		err = k.nft.Flush()
	}
	if err != nil {
		_ = k.close() // the first error is the one that matters
		return fmt.Errorf("adding %s and %d more: %w", all[0].start, len(all)-1, err)
	}
	return nil
}

func (k *kernelSets) addIPSet(t *Target, addrs []netip.Addr) error {
	var before netip.Prefix
	for _, a := range addrs {
		p := t.prefix(a)
		if p == before {
			continue
		}
		before = p
		if err := k.addPrefix(t, p); err != nil {
			return fmt.Errorf("adding %s: %w", p, err)
		}
	}
	return nil
}

func (k *kernelSets) addPrefix(t *Target, p netip.Prefix) error {
	kind := uint16(ipsetAddrV4)
	if t.v6 {
		kind = ipsetAddrV6
	}
	e := netlink.NewAttributeEncoder()
	e.Uint8(ipsetAttrProtocol, ipsetProtocol)
	e.String(ipsetAttrSetName, t.set)
	e.Nested(ipsetAttrData, func(e *netlink.AttributeEncoder) error {
		e.Nested(ipsetDataIP, func(e *netlink.AttributeEncoder) error {
			e.Bytes(kind|unix.NLA_F_NET_BYTEORDER, p.Addr().AsSlice())
			return nil
		})
		e.Uint8(ipsetDataCIDR, uint8(p.Bits()))
		return nil
	})
	attrs, err := e.Encode()
	if err != nil {
		return err
	}
	_, err = k.call(unix.NFNL_SUBSYS_IPSET, ipsetCmdAdd, uint8(familyOfIPSet(t)), netlink.Acknowledge, attrs)
	switch {
	case errors.Is(err, ipsetErrCIDR):
		err = fmt.Errorf("the set takes no prefix of that length: %w", err)
	case errors.Is(err, ipsetErrFull):
		err = fmt.Errorf("the set is full: %w", err)
	}
	return err
}

func familyOfIPSet(t *Target) int {
	if t.v6 {
		return unix.AF_INET6
	}
	return unix.AF_INET
}
