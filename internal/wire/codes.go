package wire

import "strconv"

// Header bits (RFC 1035 §4.1.1, RFC 4035 §3).
const (
	FlagQR = 1 << 15
	FlagAA = 1 << 10
	FlagTC = 1 << 9
	FlagRD = 1 << 8
	FlagRA = 1 << 7
	FlagAD = 1 << 5
	FlagCD = 1 << 4

	opcodeShift = 11
	opcodeMask  = 15 << opcodeShift
)

// Opcodes.
const (
	OpQuery  = 0
	OpNotify = 4
	OpUpdate = 5
)

// Classes.
const (
	ClassIN   = 1
	ClassCH   = 3
	ClassNONE = 254
	ClassANY  = 255
)

// Rcode is a response code, extended (12 bits) or not.
type Rcode uint16

// Response codes (RFC 6895 §2.3).
const (
	NoError   Rcode = 0
	FormErr   Rcode = 1
	ServFail  Rcode = 2
	NXDomain  Rcode = 3
	NotImp    Rcode = 4
	Refused   Rcode = 5
	YXDomain  Rcode = 6
	NotAuth   Rcode = 9
	BadVers   Rcode = 16
	BadCookie Rcode = 23
)

// String is the mnemonic.
func (r Rcode) String() string {
	switch r {
	case NoError:
		return "NOERROR"
	case FormErr:
		return "FORMERR"
	case ServFail:
		return "SERVFAIL"
	case NXDomain:
		return "NXDOMAIN"
	case NotImp:
		return "NOTIMP"
	case Refused:
		return "REFUSED"
	case YXDomain:
		return "YXDOMAIN"
	case NotAuth:
		return "NOTAUTH"
	case BadVers:
		return "BADVERS"
	case BadCookie:
		return "BADCOOKIE"
	}
	return "RCODE" + strconv.Itoa(int(r))
}

// EDNS option codes.
const (
	OptNSID      = 3
	OptECS       = 8
	OptCookie    = 10
	OptKeepalive = 11
	OptPadding   = 12
	OptEDE       = 15
)
