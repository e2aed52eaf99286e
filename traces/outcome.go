package traces

import "fmt"

// String returns the outcome's name as traces record it.
func (o Outcome) String() string {
	switch o {
	case Pending:
		return "pending"
	case Success:
		return "success"
	case Failed:
		return "failed"
	case Dropped:
		return "dropped"
	case Cancelled:
		return "cancelled"
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// ParseOutcome reads what String writes.
func ParseOutcome(name string) (Outcome, error) {
	for o := Pending; o <= Cancelled; o++ {
		if o.String() == name {
			return o, nil
		}
	}
	return Pending, fmt.Errorf("traces: outcome %q, want pending, success, failed, dropped or cancelled", name)
}

// String returns the source's name as traces record it.
func (s SessionSource) String() string {
	switch s {
	case SessionNone:
		return "none"
	case SessionSupplied:
		return "supplied"
	case SessionDerived:
		return "derived"
	}
	return fmt.Sprintf("session_source(%d)", uint8(s))
}

// ParseSessionSource reads what String writes.
func ParseSessionSource(name string) (SessionSource, error) {
	for s := SessionNone; s <= SessionDerived; s++ {
		if s.String() == name {
			return s, nil
		}
	}
	return SessionNone, fmt.Errorf("traces: session source %q, want none, supplied or derived", name)
}
