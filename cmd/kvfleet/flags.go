package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flags reads a command's flags. A value that cannot be read does not end the
// reading: it is kept as a fault, so that all faults are told at once.
type flags struct {
	set    *pflag.FlagSet
	faults []error
}

func newFlags(c *cobra.Command) *flags {
	c.Flags().SortFlags = false
	return &flags{set: c.Flags()}
}

func (f *flags) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Errorf(format, args...))
}

// err is all faults as one usage error, or nil.
func (f *flags) err() error {
	if len(f.faults) == 0 {
		return nil
	}
	return &usageError{errors.Join(f.faults...)}
}

// given says whether a flag was set, on the command line or by a grid file.
func (f *flags) given(name string) bool {
	flag := f.set.Lookup(name)
	if v, ok := flag.Value.(*value); ok {
		return v.given
	}
	return flag.Changed
}

// only faults the named flags, where given, unless ok: a flag that would change
// nothing is a mistake.
func (f *flags) only(ok bool, unless string, names ...string) {
	for _, name := range names {
		if !ok && f.given(name) {
			f.fault("--%s: means nothing %s", name, unless)
		}
	}
}

// A value is a flag's value as pflag sees it.
type value struct {
	flags *flags
	text  string // the default, as help shows it
	kind  string // what help calls the value
	where string // what a fault calls it
	given bool
	many  bool                                // several values make sense
	read  func(text string, first bool) error // its error says what is wanted
}

func (v *value) String() string { return v.text }
func (v *value) Type() string   { return v.kind }

// Set reads one value. It never fails; see flags.
func (v *value) Set(text string) error {
	for _, err := range each(v.read(text, !v.given)) {
		v.flags.fault("%s: %w", v.where, err)
	}
	v.given = true
	return nil
}

// each is the errors that one may hold.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// add declares a flag; a name may end in a comma and its one-letter form.
func (f *flags) add(name, kind, usage, def string, read func(text string, first bool) error) *value {
	name, short, _ := strings.Cut(name, ",")
	v := &value{flags: f, text: def, kind: kind, where: "--" + name, read: read}
	if def != "" {
		if err := read(def, true); err != nil {
			panic(fmt.Sprintf("kvfleet: default of --%s: %v", name, err))
		}
	}
	f.set.VarP(v, name, short, usage)
	return v
}

// one declares a flag of a single value.
func one[T any](f *flags, to *T, p parser[T], name, usage, def string) {
	f.add(name, p.kind, usage, def, func(text string, _ bool) error {
		v, ok := p.parse(text)
		if !ok {
			return fmt.Errorf("got %q, want %s", text, p.want)
		}
		*to = v
		return nil
	})
}

// list declares a flag of values joined by commas, which may be repeated. What
// is given replaces the default.
func list[T comparable](f *flags, to *[]T, p parser[T], name, usage, def string) {
	v := f.add(name, p.kind+",...", usage, def, func(text string, first bool) error {
		if first {
			*to = nil
		}
		var wrong []error
		for item := range strings.SplitSeq(text, ",") {
			item = strings.TrimSpace(item)
			v, ok := p.parse(item)
			switch {
			case !ok:
				wrong = append(wrong, fmt.Errorf("got %q, want %s", item, p.want))
			case slices.Contains(*to, v):
				wrong = append(wrong, fmt.Errorf("%s is given twice", item))
			default:
				*to = append(*to, v)
			}
		}
		return errors.Join(wrong...)
	})
	v.many = true
}

// texts declares a flag that may be repeated, each time with one value.
func texts(f *flags, to *[]string, kind, name, usage string) {
	v := f.add(name, kind, usage, "", func(text string, _ bool) error {
		*to = append(*to, text)
		return nil
	})
	v.many = true
}
