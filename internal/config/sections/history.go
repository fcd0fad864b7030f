package sections

import "github.com/waymark-dns/waymark/internal/plan"

var historyRow = row[plan.Plan]{
	key:     "history",
	value:   under(historyRows, func(p *plan.Plan) *plan.History { return &p.Server.History }),
	example: "{dir: history, keep: 100}",
	doc: "The versions of this file that were in use, so that `waymark config` can change the file of a running server, and take a " +
		"change back that nobody confirms. Without the section it looks and checks only. Files that are included are not kept.",
}

var historyRows = []row[plan.History]{
	{
		key: "dir", must: true, value: path(func(h *plan.History) *string { return &h.Dir }), example: "history",
		doc: "Folder of the versions, for the server alone. It is made where the folder above it is there.",
	},
	{
		key: "keep", value: number(func(h *plan.History) *int { return &h.Keep }), preset: "100", example: "100",
		doc: "So many versions; beyond that the oldest go.",
	},
}
