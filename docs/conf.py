"""Sphinx settings. Build with:  sphinx-build -W --keep-going docs docs/_build/html"""

import os
import re
import sys
import warnings
from pathlib import Path

# The examples are small: one thread each is quickest, above all on a busy machine.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import matplotlib  # noqa: E402

matplotlib.use("Agg")
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import mnarkmeans  # noqa: E402

project = "mnarkmeans"
author = "the mnarkmeans developers"
copyright = author
version = release = mnarkmeans.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "page_output",
]
exclude_patterns = ["_build", "**/README.txt", "sg_execution_times.rst", "auto_examples/*.ipynb"]
suppress_warnings = ["config.cache"]  # functions among the settings of the gallery
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_inherit_docstrings = True
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # keeps the trailing underscores
napoleon_use_param = False  # types are prose here, not names to link

# Intersphinx fetches inventories from the network; off unless asked for.
if os.environ.get("MNARKMEANS_DOCS_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "sklearn": ("https://scikit-learn.org/stable", None),
        "anndata": ("https://anndata.readthedocs.io/en/stable", None),
        "numpy": ("https://numpy.org/doc/stable", None),
    }

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "mnarkmeans"
html_static_path = ["_static"]
html_css_files = ["mnarkmeans.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "secondary_sidebar_items": ["page-toc"],
}
NO_SIDEBAR = (
    "index getting_started command_line faq comparison performance scaling testing contributing "
    "releasing"
)
html_sidebars = {page: [] for page in NO_SIDEBAR.split()}
html_context = {"default_mode": "auto"}


def plain_look(gallery_conf, fname):
    """One look for all figures of the gallery."""
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 11,
            "font.size": 10,
            "legend.frameon": False,
        }
    )
    # Other libraries' notices are not part of an example.
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", category=DeprecationWarning)


sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", plain_look),
    "reset_modules_order": "before",
    "matplotlib_animations": False,
    "doc_module": ("mnarkmeans",),
    "reference_url": {"mnarkmeans": None},
    "backreferences_dir": "auto_examples/used",
    "capture_repr": ("_repr_html_", "__repr__"),
}


def mathml(display):
    """Formulas as MathML, which browsers draw themselves: no script, no network."""
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    def visit(translator, node):
        markup = tex2mathml(node.astext(), as_block=display)
        translator.body.append(f'<div class="math">{markup}</div>' if display else markup)
        raise nodes.SkipNode

    return visit, None


html_math_renderer = "mathml"


def write_api_page(app, config):
    """The API page lists what the modules declare public, so it cannot fall behind."""
    import importlib
    import inspect

    from jinja2 import Template

    from mnarkmeans.baselines import BASELINES

    def names(module):
        package = importlib.import_module(module)
        public = [getattr(package, name) for name in package.__all__]
        return [
            name
            for name, thing in zip(package.__all__, public, strict=True)
            if inspect.isclass(thing) or inspect.isfunction(thing)
        ]

    template = Template((ROOT / "docs/_templates/api.rst").read_text("utf8"))
    page = template.render(names=names, baselines=", ".join(f"``{b}``" for b in BASELINES))
    target = ROOT / "docs/api/index.rst"
    target.parent.mkdir(exist_ok=True)
    if not target.exists() or target.read_text("utf8") != page:
        target.write_text(page, "utf8")


def write_guide_for_programs(app, error):
    """llms.txt beside the pages, its links turned to them."""
    if error is None and app.builder.format == "html":
        text = (ROOT / "llms.txt").read_text("utf8")
        text = re.sub(r"\]\(docs/([^)]+)\.md\)", r"](\1.html)", text)
        (Path(app.outdir) / "llms.txt").write_text(text, "utf8")


def skip_inherited_from_sklearn(app, what, name, obj, skip, options):
    """Methods that scikit-learn documents are not repeated here."""
    return True if str(getattr(obj, "__module__", "")).startswith("sklearn.") else skip


def setup(app):
    app.connect("config-inited", write_api_page)
    app.add_html_math_renderer("mathml", mathml(display=False), mathml(display=True))
    app.connect("build-finished", write_guide_for_programs)
    app.connect("autodoc-skip-member", skip_inherited_from_sklearn)
