package traces

import (
	"fmt"
	"strings"
	"time"
)

// An SLO is the service level a request is judged by: the longest acceptable
// time to first token, and the longest acceptable median time between tokens. A
// zero limit is no limit. Verdicts are computed and never stored, so that a
// trace can be judged by another SLO later.
type SLO struct {
	TTFT time.Duration
	ITL  time.Duration
}

// Meets reports whether the row was answered within the SLO. An answer without a
// first-token time meets no TTFT limit. An answer without gaps between tokens,
// which is one of a single token, is judged on TTFT alone.
func (s SLO) Meets(r *Row) bool {
	if r.Outcome != Success {
		return false
	}
	if ttft := r.TTFT(); s.TTFT > 0 && (ttft == None || ttft > int64(s.TTFT)) {
		return false
	}
	return s.ITL <= 0 || r.ITLP50 == None || r.ITLP50 <= int64(s.ITL)
}

// String writes the SLO as traces record it, for example "ttft=1.2s,itl=45ms".
// An SLO without limits is "none".
func (s SLO) String() string {
	var limits []string
	if s.TTFT > 0 {
		limits = append(limits, "ttft="+s.TTFT.String())
	}
	if s.ITL > 0 {
		limits = append(limits, "itl="+s.ITL.String())
	}
	if limits == nil {
		return "none"
	}
	return strings.Join(limits, ",")
}

// ParseSLO reads what String writes. The empty text is the SLO without limits.
func ParseSLO(text string) (SLO, error) {
	var s SLO
	if text == "" || text == "none" {
		return s, nil
	}
	for _, limit := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(limit, "=")
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return SLO{}, fmt.Errorf("traces: SLO %q: %q is no positive duration, want for example ttft=1.2s,itl=45ms", text, limit)
		}
		switch name {
		case "ttft":
			s.TTFT = d
		case "itl":
			s.ITL = d
		default:
			return SLO{}, fmt.Errorf("traces: SLO %q: unknown limit %q, want ttft or itl", text, name)
		}
	}
	return s, nil
}
