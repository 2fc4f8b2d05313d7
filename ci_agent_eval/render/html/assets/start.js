// Shows the view of the address, follows it, and prepares for print.

const MOST_PRINTED = 500;

showFilters(document.getElementById("filters"));
const suiteBudgets = dataOf("budget-data");
if (suiteBudgets.length) {
  const holder = document.getElementById("suite-budgets");
  holder.append(budgetBars(suiteBudgets));
  holder.hidden = false;
}
followAddress();
addEventListener("hashchange", followAddress);
addEventListener("beforeprint", () => {
  scenarioPages?.all(MOST_PRINTED);
  episodePages.all(MOST_PRINTED);
  document.querySelectorAll("details").forEach((folded) => {
    folded.open = true;
  });
});
