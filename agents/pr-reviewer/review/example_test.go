package review_test

import (
	"fmt"

	"github.com/agentd/agentd/agents/pr-reviewer/review"
)

func Example() {
	const diff = `diff --git a/src/cart.ts b/src/cart.ts
--- a/src/cart.ts
+++ b/src/cart.ts
@@ -7,3 +7,5 @@ export function total(cart: Cart): number {
   let sum = 0;
-  for (const item of cart.items) sum += item.price;
+  // TODO: discounts
+  for (const item of cart.items) sum += item.price * item.count;
+  console.log(sum);
   return sum;
`
	files, err := review.ParseDiff([]byte(diff))
	if err != nil {
		fmt.Println(err)
		return
	}
	report := review.Review(files, review.Low)
	fmt.Println(report.Verdict)
	for _, f := range report.Findings {
		fmt.Printf("%s:%d %s %s\n", f.File, f.Line, f.Severity, f.Rule)
	}
	// Output:
	// comment
	// src/cart.ts:10 med debug-print
	// src/cart.ts:8 low todo-no-owner
}
