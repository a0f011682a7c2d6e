/* The page's files, from the folder assets, which CMakeLists.txt names.
   page.js is served as one file; it is written as one file a concept, in the
   order of their use. */
    .section .rodata
    .global hearth_page_html_begin
    .global hearth_page_html_end
    .global hearth_page_css_begin
    .global hearth_page_css_end
    .global hearth_page_js_begin
    .global hearth_page_js_end
    .global hearth_page_icon_begin
    .global hearth_page_icon_end
hearth_page_html_begin:
    .incbin "index.html"
hearth_page_html_end:
hearth_page_css_begin:
    .incbin "css/base.css"
    .incbin "css/panels.css"
    .incbin "css/chat.css"
hearth_page_css_end:
hearth_page_js_begin:
    .incbin "js/dom.js"
    .incbin "js/format.js"
    .incbin "js/api.js"
    .incbin "js/state.js"
    .incbin "js/colours.js"
    .incbin "js/meters.js"
    .incbin "js/lanes.js"
    .incbin "js/tree.js"
    .incbin "js/prompt.js"
    .incbin "js/field.js"
    .incbin "js/requests.js"
    .incbin "js/connect.js"
    .incbin "js/dialogue.js"
    .incbin "js/chat.js"
    .incbin "js/composer.js"
    .incbin "js/main.js"
hearth_page_js_end:
hearth_page_icon_begin:
    .incbin "icon.svg"
hearth_page_icon_end:
    .byte 0
    .section .note.GNU-stack,"",%progbits
