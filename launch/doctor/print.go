package doctor

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the report as a table, each finding that needs something done followed by what.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "weft %s on %s\n", r.Weft, r.Host)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.Checks {
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.Status, c.Name, c.Detail)
		if c.Fix != "" {
			fmt.Fprintf(t, "\t\t→ %s\n", c.Fix)
		}
	}
	return t.Flush()
}
