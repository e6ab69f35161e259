"""Trees of salt, oat, mint (and more) as texts of every format that can be written back."""

__all__ = ["CANONICAL", "EDGES", "LEVELS", "LINES", "PARENTS", "PATHS", "TREE_TEXTS"]

PARENTS = "id,parent,price\nall,,\ntea,all,\nmilk,all,\nsalt,milk,2\nmint,tea,3\noat,milk,1\n"
EDGES = "parent,child,since\nall,tea,1\nall,milk,1\nmilk,salt,2\ntea,mint,3\nmilk,oat,4\n"
SKOS = "broader,narrower\nall,tea\nall,milk\nmilk,salt\ntea,mint\nmilk,oat\n"
PATHS = "sku,path,stock\nsalt,Food > Milk,4\nmint,Food > Tea,5\noat,Food > Milk,6\n"
LEVELS = "item,l1,l2\nsalt,Food,Milk\nmint,Food,Tea\noat,Food,Milk\n"
LINES = "Food > Milk > salt\nFood > Tea > mint\nFood > Milk > oat\n"
# The text, its form and reader, and what is another text where salt has moved from the milk to the tea.
TREE_TEXTS = {
    "parents": (PARENTS, "parents", {"salt,milk,2": "salt,tea,2"}),
    "parents with 0 for none": (
        "code;parent_id;name\nall;0;All\ntea;all;Tea\nmilk;all;Milk\nsalt;milk;Salt\nmint;tea;Mint\noat;milk;Oat\n",
        "parents",
        {"salt;milk;": "salt;tea;"},
    ),
    "broader": (
        "concept,skos:broader\ntea,all\nmilk,all\nsalt,milk\nmint,tea\noat,milk\n",
        "parents",
        {"salt,milk": "salt,tea"},
    ),
    "quoted": (
        'id,parent,"note, long"\nall,,"x ""y"""\n"tea", all ,"m\nn"\nmilk,all,\n\n"salt", milk ,"7,50"\nmint,tea,\n'
        'oat,"milk",-\n',
        "parents",
        {'"salt", milk ,': '"salt", tea ,'},
    ),
    "edges": (EDGES, "edges", {"milk,salt,2": "tea,salt,2"}),
    "skos": (SKOS, "edges", {"milk,salt": "tea,salt"}),
    "triples": (
        "subject,predicate,object\n"
        + "".join(
            f"{child},skos:prefLabel,{child.upper()}\n{child},skos:broader,{parent}\n"
            for parent, child in (row.split(",") for row in SKOS.split()[1:])
        ),
        "edges",
        {"salt,skos:broader,milk": "salt,skos:broader,tea"},
    ),
    "paths": (PATHS, "paths", {"salt,Food > Milk": "salt,Food > Tea"}),
    "bare paths": (PATHS.replace(" > ", "/"), "paths", {"salt,Food/Milk": "salt,Food/Tea"}),
    "levels": (LEVELS, "paths", {"salt,Food,Milk": "salt,Food,Tea"}),
    "a column of paths": (
        "path,stock\nFood > Milk > salt,4\nFood > Tea > mint,5\nFood > Milk > oat,6\n",
        "paths",
        {"Milk > salt": "Tea > salt"},
    ),
    "lines": ("# mine\n" + LINES, "paths", {"Milk > salt": "Tea > salt"}),
    "lines with ids": (
        "# Version 2026\n7 - Food > Milk\n8 - Food > Tea\n\n9 - Food > Milk\n",
        "paths",
        {"7 - Food > Milk": "7 - Food > Tea"},
    ),
}

# The same for formats that are written in their canonical form: the text, its form and its ending.
CANONICAL = {
    "lengths": ("[&R] ((salt:0.10,'oat':2e-3)milk:1[a, b],\n (mint:3[c])tea)all:0; \n", "newick", ".nwk"),
    "objects": (
        """{"name": "all", "owner": "me", "children": [
  {"name": "milk", "children": [{"name": "salt", "price": 1.50}, {"name": "oat"}]},
  {"name": "tea", "children": [{"name": "mint"}, "sage"]}
]}""",
        "json",
        ".json",
    ),
    "keys": ('{"all": {"milk": ["salt", "oat"], "tea": {"mint": null, "herbs": ["sage"]}}}', "json", ".json"),
    "rows": (
        '[{"id": "all", "parent": null}, {"id": "milk", "parent": "all"}, {"id": "tea", "parent": "all"},'
        ' {"id": "salt", "parent": "milk"}, {"parent": "tea", "id": "mint"}, {"id": "oat", "parent": "milk"}]',
        "json",
        ".json",
    ),
    "pairs": ('{"edges":[["all","milk"],["all","tea"],["milk","salt"],["tea","mint"],["milk","oat"]]}', "json", ".txt"),
    "lists": (
        '{"children": [[4, 5], [0, 2],\n [1]], "labels": ["salt", "mint", "oat", "all", "milk", "tea"]}',
        "json",
        ".json",
    ),
}
